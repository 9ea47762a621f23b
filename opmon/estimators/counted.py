"""Parts of a frame of which every input has its truth: what is counted in them, and how far that may be chance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from opmon.abc import Measure
from opmon.abc.measure import Ratio
from opmon.errors import InputError
from opmon.estimators.intervals import wilson
from opmon.estimators.slices import Estimating, Members
from opmon.problems import Problem, traits
from opmon.quantities import Quantity
from opmon.types import Estimate, Floats
from opmon.types.labelled import Labelled

METHOD = "census"


@dataclass(frozen=True, eq=False)
class Counted:
    """How one figure of a part is told: :attr:`exact`, or with :attr:`by_chance` the interval that it has where the
    inputs are taken for a sample of all that the model may meet."""

    exact: Estimating
    by_chance: Estimating


def of_losses(losses: Floats, problem: Problem, quantity: Quantity) -> Counted:
    """The usual figure of the problem: a share of right inputs, or a mean of errors; NaN is left out.

    >>> told = of_losses(np.array([0.0, 1.0, 0.0, 0.0]), "classification", Quantity("accuracy", share=True))
    >>> told.exact(np.array([True, True, False, False]), 0.95).value
    0.5
    """
    known = ~np.isnan(losses)
    share = traits(problem).is_share
    values = np.where(known, 1 - losses if share else losses, 0.0)
    return _of_ratio(Ratio(values, known.astype(np.float64), highest=1.0 if share else math.inf), quantity, float)


def of_measure(rows: Labelled, measure: Measure, quantity: Quantity) -> Counted:
    """Any measure of parts of these rows, each of which is answered."""
    ratio = measure.ratio(rows)
    if ratio is not None:
        return _of_ratio(ratio, quantity, measure.told)

    def exact(members: Members, level: float) -> Estimate:
        inside = rows.only(members)
        value = measure.value(inside, np.full(len(inside), 1 / len(inside)))
        return _told(value, 0.0, len(inside), level, quantity)

    def by_chance(members: Members, level: float) -> Estimate:
        inside = rows.only(members)
        weights = np.full(len(inside), 1 / len(inside))
        influence = measure.linearised(inside, weights)
        if influence is None:
            raise InputError(f"how far {quantity.name} is chance in a part is not known")
        error = math.sqrt(float((weights * weights) @ (influence * influence)))
        return _told(measure.value(inside, weights), error, len(inside), level, quantity)

    return Counted(exact, by_chance)


def _of_ratio(ratio: Ratio, quantity: Quantity, tell: Callable[[float], float]) -> Counted:
    binary = ratio.binary

    def exact(members: Members, level: float) -> Estimate:
        above, below = _sums(ratio, members, quantity)
        return _told(tell(above / below), 0.0, int(members.sum()), level, quantity)

    def by_chance(members: Members, level: float) -> Estimate:
        above, below = _sums(ratio, members, quantity)
        value, size = above / below, int(members.sum())
        gaps = (ratio.numerator - value * ratio.denominator)[members]
        error = math.sqrt(float(gaps @ gaps)) / below
        if binary:
            low, high, _ = wilson(min(value, 1.0), _worth(value, error, ratio.denominator[members]), level)
        else:
            reach = error * float(ndtri(0.5 + level / 2))
            low, high = max(value - reach, ratio.lowest), min(value + reach, ratio.highest)
        return Estimate(tell(value), tell(low), tell(high), size, size, 1.0, METHOD, level, quantity=quantity)

    return Counted(exact, by_chance)


def _worth(share: float, error: float, counts: Floats) -> float:
    """How many inputs that count once each would tell as much of a share: an input that F1 counts twice is one."""
    varies = share * (1 - share)
    return varies / error**2 if varies > 0 and error > 0 else float(counts.sum()) ** 2 / float(counts @ counts)


def _sums(ratio: Ratio, members: Members, quantity: Quantity) -> tuple[float, float]:
    above, below = float(ratio.numerator @ members), float(ratio.denominator @ members)
    if not below:
        raise InputError(f"{quantity.name} is undefined: no input of the part counts for it")
    return above, below


def _told(value: float, error: float, size: int, level: float, quantity: Quantity) -> Estimate:
    reach = error * float(ndtri(0.5 + level / 2))
    return Estimate(
        value, value - reach, value + reach, size, size, 1.0, METHOD, level, quantity=quantity, standard_error=error
    )
