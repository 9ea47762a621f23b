"""By how much a measure of one model differs from that of another, on the same labelled draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from opmon.abc import Measure
from opmon.errors import InputError
from opmon.estimators._bootstrap import resamples
from opmon.estimators._known import Known
from opmon.estimators._linear import LinearEstimator
from opmon.quantities import Quantity
from opmon.types import Floats, Sample
from opmon.types.labelled import Labelled
from opmon.wording import counted

Members = NDArray[np.bool_]
FEWEST = 10
"""With fewer answered draws nothing is decided."""
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Pair:
    """The draws of one round, with what each of two models says of them; one entry per draw everywhere."""

    estimator: LinearEstimator
    sample: Sample
    first: Labelled
    second: Labelled
    slices: Mapping[str, Members] = field(default_factory=dict)


@dataclass(frozen=True)
class PairedDifference:
    """What a measure is of both models, and by how much it is higher of the second."""

    first: float
    second: float
    difference: float
    low: float
    high: float
    labels: int
    """The answered draws that count for it."""
    differing: int
    """Those on which it is another of the two models, so that they tell them apart."""
    chance: float
    """How likely a difference as large as this would be if there were none."""


def paired_difference(
    pairs: Sequence[Pair], measure: Measure, quantity: Quantity, level: float = 0.95, within: str | None = None
) -> PairedDifference:
    """``T̂' − T̂`` over all inputs of the rounds, each of which counts by the size of its frame.

    The draws of a round have the coefficients of its design, times the round's share of all inputs. The variance is
    that of ``Σ a_k (u'_k − u_k)`` with the influences ``u`` and ``u'`` of each draw on both: inputs on which the two
    models do the same carry no noise. Student's interval, with one degree of freedom less than draws that the variance
    comes from, ``(Σ t²)²/Σ t⁴``. Of a measure that tells no influence both are computed on the same resamples of the
    draws. Of one that is best at 0 the distances from 0 are compared. ``within`` names a slice.
    """
    known = [(pair, _inside(pair, measure, within)) for pair in pairs]
    known = [(pair, inside) for pair, inside in known if inside.any()]
    labels = sum(int(inside.sum()) for _, inside in known)
    where = "" if within is None else f" in {within}"
    if labels < 2:
        few = counted(labels, "labelled draw") if labels else "no labelled draw"
        wants = "; it wants the scores of both for the same classes" if measure.needs_scores else ""
        raise InputError(f"{quantity.name}{where} cannot be compared: {few} counts for it{wants}")
    size = math.fsum(pair.sample.draw.frame_size for pair, _ in known)
    both = [
        (_known(pair, pair.first, inside), _known(pair, pair.second, inside), pair.sample.draw.frame_size / size)
        for pair, inside in known
    ]
    first, second = _joined([one for one, _, _ in both]), _joined([two for _, two, _ in both])
    weights = np.concatenate([share * one.coefficients for one, _, share in both])
    weights = weights / weights.sum()
    total = math.fsum(share * float(one.coefficients.sum()) for one, _, share in both)
    values = [measure.value(rows, weights) for rows in (first, second)]
    if not all(map(math.isfinite, values)):
        both_values = f"{values[0]:g} of the first and {values[1]:g} of the second"
        raise InputError(f"{quantity.name}{where} cannot be compared: it is {both_values}")
    signs = [math.copysign(1.0, value) if quantity.better == "zero" else 1.0 for value in values]
    difference = signs[1] * values[1] - signs[0] * values[0]
    influences = [measure.linearised(rows, weights) for rows in (first, second)]
    if influences[0] is None or influences[1] is None:
        error, freedom, differing = _resampled(both, measure, (first, second), weights, signs)
    else:
        u = signs[1] * influences[1] - signs[0] * influences[0]
        error, freedom = _linearised(both, u, weights, total)
        differing = int((np.abs(u) > ROUNDING * max(float(np.abs(influences[0]).max()), 1e-300)).sum())
    t = float(stdtrit(freedom, 0.5 + level / 2))
    low, high = difference - t * error, difference + t * error
    if quantity.share:
        low, high = max(low, -1.0), min(high, 1.0)
    chance = 1.0 if error == 0 or labels < FEWEST else 2 * float(stdtr(freedom, -abs(difference) / error))
    return PairedDifference(values[0], values[1], difference, low, high, labels, differing, chance)


def holm(chances: Mapping[str, float], alpha: float) -> tuple[str, ...]:
    """The names that differ, with a probability of ``alpha`` at most that any of them does not (Holm, 1979)."""
    found: list[str] = []
    for place, name in enumerate(sorted(chances, key=lambda each: chances[each])):
        if chances[name] > alpha / (len(chances) - place):
            break
        found.append(name)
    return tuple(found)


def _inside(pair: Pair, measure: Measure, within: str | None) -> Members:
    usable = pair.sample.answered & pair.first.answered & pair.second.answered
    if measure.needs_scores:
        usable = usable & pair.first.scored & pair.second.scored
    if within is None:
        return usable
    return usable & pair.slices.get(within, np.zeros(len(usable), np.bool_))


def _known(pair: Pair, rows: Labelled, inside: Members) -> Known:
    answered = pair.sample.answered & pair.first.answered & pair.second.answered
    sample = Sample(pair.sample.draw, np.where(answered, 0.0, np.nan), None, pair.sample.propensity)
    return Known(pair.estimator, sample, rows.only(inside), inside)


def _joined(parts: Sequence[Known]) -> Labelled:
    rows = [part.rows for part in parts]
    scores = [each.scores for each in rows if each.scores is not None]
    return Labelled(
        np.concatenate([each.answered for each in rows]),
        np.concatenate([each.truth for each in rows]),
        np.concatenate([each.predicted for each in rows]),
        np.concatenate(scores) if len(scores) == len(rows) else None,
        rows[-1].classes,
    )


def _linearised(
    both: Sequence[tuple[Known, Known, float]], u: Floats, weights: Floats, total: float
) -> tuple[float, float]:
    """The standard error of ``Σ a u``, and its degrees of freedom."""
    variance, start = 0.0, 0
    for one, _, share in both:
        own = u[start : start + len(one.rows)]
        start += len(one.rows)
        variance += (share / total) ** 2 * one.estimator.variance(one.sample, one.of_all(own))
    return math.sqrt(max(variance, 0.0)), _freedom(weights * u)


def _freedom(terms: Floats) -> float:
    squares = terms**2
    whole = float((squares**2).sum())
    return max(float(squares.sum()) ** 2 / whole - 1, 1.0) if whole > 0 else 1.0


def _resampled(
    both: Sequence[tuple[Known, Known, float]],
    measure: Measure,
    rows: tuple[Labelled, Labelled],
    weights: Floats,
    signs: Sequence[float],
) -> tuple[float, float, int]:
    """The same by resampling the draws of each round; every draw may tell the two apart."""
    times = np.concatenate([resamples(one) for one, _, _ in both], axis=1)
    found: list[float] = []
    for each in times:
        try:
            first, second = (measure.value(own, weights * each) for own in rows)
        except InputError:
            continue
        found.append(signs[1] * second - signs[0] * first)
    if len(found) < len(times) / 4:
        raise InputError("the measure cannot be computed on most resamples of the draws")
    same = rows[0].predicted == rows[1].predicted
    apart = int((~(same.all(axis=1) if same.ndim > 1 else same)).sum())
    return float(np.std(found, ddof=1)), max(float(1 / (weights @ weights)) - 1, 1.0), apart
