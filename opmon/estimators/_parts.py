"""Ratios over a part of the frame: point estimate and interval, for shares, bounded and unbounded values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from opmon.abc import Ratio
from opmon.estimators._answers import USUAL
from opmon.estimators._known import Known
from opmon.estimators._linear import LinearEstimator
from opmon.estimators._losses import Interval
from opmon.estimators._ratios import Part, hidden_bounds, share_bounds, value_bounds
from opmon.types import Floats, Sample


@dataclass(frozen=True)
class PartEstimate:
    """A ratio with its interval and standard error; ``part`` is what it was made of."""

    value: float
    low: float
    high: float
    error: float
    notes: tuple[str, ...]
    part: Part

    @property
    def heard(self) -> int:
        return self.part.heard


def part_estimate(
    estimator: LinearEstimator, sample: Sample, values: Floats, mass: Floats, ratio: Ratio, binary: bool, level: float
) -> PartEstimate:
    """The mean of ``values`` where each draw counts ``mass`` times; both are of all draws, 0 where nothing is known.

    ``ratio`` says between which numbers values lie, whatever is drawn.
    """
    power = max(int(np.frexp(np.abs(values).max())[1]) - USUAL, 0)
    y = np.ldexp(values, -power)
    part = Part.of(estimator, sample, y, mass)
    low, high, notes = _interval(estimator, sample, part, y, ratio, binary, power, level)
    value, low, high, error = (
        float(np.ldexp(number, power)) for number in (part.mean, low, high, math.sqrt(part.variance))
    )
    if not (part.tells or part.known):
        notes = (*notes, too_few(part))
    return PartEstimate(value, min(low, value), max(high, value), error, notes, part)


def share_bounds_of(known: Known, members: Floats, mass: Floats, level: float) -> tuple[float, float]:
    """The interval of the share of ``mass`` that lies in ``members``; both are of the rows."""
    part = known.part(members, mass)
    if part.known:
        return part.mean, part.mean
    low, high = share_bounds(part, level)
    wider = hidden_bounds(part, known.sample, level)
    return (low, high) if wider is None else (min(low, wider[0]), max(high, wider[1]))


def too_few(part: Part) -> str:
    """The note of a part in which there are too few answers to say more than bounds."""
    draws = "draw counts" if part.heard == 1 else "draws count"
    worth = "" if part.draws > part.heard - 0.5 else f", worth {part.draws:.1f} of equal weight"
    return f"too few to say: only {part.heard} answered {draws} for it{worth}; no more is known than its bounds"


def _interval(
    estimator: LinearEstimator,
    sample: Sample,
    part: Part,
    values: Floats,
    ratio: Ratio,
    binary: bool,
    power: int,
    level: float,
) -> Interval:
    if part.known:
        return part.mean, part.mean, ()
    if binary:
        low, high = share_bounds(part, level)
        wider = hidden_bounds(part, sample, level)
        return (low, high, ()) if wider is None else (min(low, wider[0]), max(high, wider[1]), ())
    answers = sample.answered
    lowest, highest = math.ldexp(ratio.lowest, -power), math.ldexp(ratio.highest, -power)
    weights = estimator.coefficients(sample)[answers]
    if part.mean - lowest < highest - part.mean or (math.isfinite(lowest) and not math.isfinite(highest)):
        low, high, notes = value_bounds(part.negative, -values[answers], weights, -lowest, level)
        low, high = -high, -low
    else:
        low, high, notes = value_bounds(part, values[answers], weights, highest, level)
    return max(low, lowest), min(high, highest), notes
