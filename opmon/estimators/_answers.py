"""The first and last steps of every estimator: looking at the answers, and wording the result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from opmon import quantities
from opmon.errors import InputError
from opmon.estimators._silence import missing
from opmon.estimators.tally import Tally
from opmon.problems import is_binary
from opmon.quantities import ACCURACY, MEAN_SQUARED_ERROR, Quantity
from opmon.response import stands_for
from opmon.types import Array, Draw, Estimate, Sample
from opmon.wording import none_of

USUAL = 100
"""Powers of two: fourth powers of losses between 2^-100 and 2^100 fit into a number."""
ROUNDING = 1e-12
E = TypeVar("E")
Method = TypeVar("Method", bound=Callable[..., Estimate])


def answered(sample: Sample) -> NDArray[np.bool_]:
    """The draws that have an answer, as a mask; an error where none has."""
    if not len(sample.draw):
        raise InputError("the draw is empty; draw at least one input before estimating")
    answers = sample.answered
    if not answers.any():
        none = none_of(len(sample.draw), "draw", "has an answer yet", "has no answer yet")
        raise InputError(f"{none}; an estimate needs at least one. Wait for labels, or import them.")
    return answers


def represented(sample: Sample) -> NDArray[np.float64]:
    """The number of draws of its stratum that each answer stands for, 0 without one; an error without any answer."""
    answered(sample)
    return stands_for(sample, column(sample.draw, "stratum"))


def unit_free(estimate: Method) -> Method:
    """Estimate huge and tiny losses in units of the largest, a power of two, so that their powers fit into numbers."""

    @functools.wraps(estimate)
    def scaled(self: object, sample: Sample, level: float = 0.95) -> Estimate:
        largest = float(np.nanmax(sample.outcomes, initial=0.0))
        power = int(np.frexp(largest)[1])
        if largest == 0 or abs(power) <= USUAL:
            return estimate(self, sample, level)
        scaled_estimate = estimate(self, replace(sample, outcomes=np.ldexp(sample.outcomes, -power)), level)
        value, low, high = (
            _times(bound, power) for bound in (scaled_estimate.value, scaled_estimate.low, scaled_estimate.high)
        )
        error = None if scaled_estimate.standard_error is None else _times(scaled_estimate.standard_error, power)
        return replace(scaled_estimate, value=value, low=low, high=high, standard_error=error)

    return cast("Method", scaled)


def in_usual_units(tally: Callable[[E, Sample], Tally]) -> Callable[[E, Sample], Tally | None]:
    """Let a tally be None for losses whose fourth powers do not fit into numbers."""

    @functools.wraps(tally)
    def checked(self: E, sample: Sample) -> Tally | None:
        power = int(np.frexp(np.nanmax(sample.outcomes, initial=0.0))[1])
        return tally(self, sample) if abs(power) <= USUAL else None

    return checked


def _times(number: float, power: int) -> float:
    with np.errstate(over="ignore"):
        return float(np.ldexp(number, power))


def require_design(sample: Sample, *designs: str) -> None:
    """Raise an error where the draw was made by a design that the estimator is not for."""
    if sample.draw.design not in designs:
        allowed = " or ".join(repr(design) for design in designs)
        raise InputError(
            f"this estimator is for draws of design {allowed}; got {sample.draw.design!r}. "
            f"Use the estimator of that name."
        )


def column(draw: Draw, name: str) -> Array:
    """A column of the draw, one value per draw; an error names it where it is missing."""
    if name not in draw.columns:
        raise InputError(
            f"a draw of design {draw.design!r} needs the column {name!r}; it has: {', '.join(draw.columns) or 'none'}"
        )
    return draw.columns[name]


def constant(draw: Draw, name: str) -> Array:
    """A constant of the design as a whole; an error names it where it is missing."""
    if name not in draw.constants:
        raise InputError(
            f"a draw of design {draw.design!r} needs the constant {name!r}; "
            f"it has: {', '.join(draw.constants) or 'none'}"
        )
    return draw.constants[name]


def estimate_of(
    sample: Sample,
    loss: float,
    low: float,
    high: float,
    *,
    method: str,
    level: float,
    standard_error: float | None,
    notes: tuple[str, ...] = (),
) -> Estimate:
    """The estimate that a mean loss and its interval make: the accuracy, ``1 − mean loss``, of a classifier, likewise
    the mean score of outputs that people judge, and of a regression, whose losses are squared errors, the mean loss.

    The interval always holds the value. An unbiased estimate of a share may itself leave [0, 1] by chance; it is then
    reported as it is, with a note, because cutting it would bias the mean over rounds. What rounding alone has moved
    across 0 or 1 is put back. Draws without an answer are told in a note.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {level}; 0.95 is usual")
    quantity = quantity_of(sample)
    low = max(low, 0.0)
    if quantity.share:
        high = min(high, 1.0)
        loss = round(loss) if abs(loss - round(loss)) < ROUNDING else loss
        if not 0 <= loss <= 1:
            notes = (*notes, "the estimate leaves [0, 1] by chance, as an unbiased estimate of few draws may")
    value, low, high = loss, min(low, loss), max(high, loss)
    if quantity.share:
        value, low, high = 1 - value, 1 - high, 1 - low
    return Estimate(
        value=float(value),
        low=float(low),
        high=float(high),
        n=len(sample.draw),
        frame_size=sample.draw.frame_size,
        response=sample.response,
        method=method,
        level=level,
        quantity=quantity,
        standard_error=None if standard_error is None else float(standard_error),
        notes=tuple(dict.fromkeys((*notes, *missing(sample)))),
    )


def quantity_of(sample: Sample) -> Quantity:
    """The quantity that the mean outcome of a sample estimates: the accuracy, or for squared errors their mean."""
    if sample.problem is not None:
        return quantities.of(sample.problem)
    return ACCURACY if is_binary(sample.outcomes[sample.answered]) else MEAN_SQUARED_ERROR


def loss_of(estimate: Estimate) -> tuple[float, float, float]:
    """The mean loss that :func:`estimate_of` made an estimate from, with its bounds."""
    if estimate.quantity.share:
        return 1 - estimate.value, 1 - estimate.high, 1 - estimate.low
    return estimate.value, estimate.low, estimate.high
