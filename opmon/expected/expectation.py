"""The mean loss of a round before any of its labels has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmon.errors import InputError
from opmon.expected.calibration import Calibration, calibrations, expected, means
from opmon.expected.design import OWN, Design, Seen, joined
from opmon.expected.level import FIRST, Ahead, ahead
from opmon.expected.widening import FORGETS, Miss, Widening
from opmon.types import Floats

SMALLEST = 0.05
"""A standard deviation of single losses below it is no measure of how far rounds may differ."""


@dataclass(frozen=True, eq=False)
class Past:
    """The answered draws of a round before."""

    number: int
    inputs: Seen
    losses: Floats
    weights: Floats
    """How many inputs of its frame each stands for, up to a factor."""

    def __post_init__(self) -> None:
        if not len(self.losses) or not len(self.losses) == len(self.weights) == len(self.inputs):
            raise InputError(f"round {self.number}: one loss and one weight for each input, of at least one")

    @property
    def shares(self) -> Floats:
        """The weights, with the sum 1."""
        return np.asarray(self.weights / self.weights.sum())

    @property
    def effective(self) -> float:
        """As many draws of equal weight would tell as much."""
        return 1 / float(self.shares @ self.shares)


@dataclass(frozen=True)
class Expectation:
    """A mean loss that is expected, with an interval."""

    value: float
    low: float
    high: float
    sd: float
    """The standard deviation, before it was widened."""
    widened: float
    """How many times as wide its interval is, because predictions before were further off than they should be."""


def expect(
    past: Sequence[Past],
    misses: Sequence[Miss],
    frame: Seen,
    number: int,
    *,
    binary: bool,
    scores: bool = True,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Expectation:
    """The mean loss of the frame of round ``number``, from the labels of the rounds before it, oldest first.

    ``value = Σ_k π_k (ḡ_k + b_k)``: ``ḡ_k`` is the mean over the frame of a regression of the loss on the variables,
    which starts from the model's own chance to be wrong (``scores``: the variable "confidence" is one); ``b_k`` is by
    how much that regression is off, foreseen from the weighted residuals of each round before (:mod:`.level`); and
    ``π_k`` how much each of several regressions, more or less held back, counts (:mod:`.calibration`).

    The variance is that of ``b``, of the coefficients, of the losses of this frame around their expectation, and of
    the differences between the regressions. :mod:`.widening` widens the interval by how far off predictions were.
    """
    if not past:
        raise InputError("labels of at least one round before are needed; from_scores does without")
    names = sorted(set(frame.variables).intersection(*(each.inputs.variables for each in past)))
    every = joined([each.inputs for each in past], names)
    losses = np.concatenate([each.losses for each in past])
    weights = np.concatenate([FORGETS ** (number - 1 - one.number) * one.effective * one.shares for one in past])
    design = Design.of(every, binary=binary, starts=scores)
    tried = calibrations(design, every, losses, weights)
    centre = float(np.average(losses, weights=weights))
    spread = float(np.average((losses - centre) ** 2, weights=weights)) ** 0.5
    unit = max(spread, SMALLEST) if binary else spread or 1.0
    offsets = [_off(design, each, every, past, number, unit) for each in tried]
    found = means(design, tried, frame.only(names))
    share = np.array([each.share for each in tried])
    values = np.array([mean.value + off.mean for mean, off in zip(found, offsets, strict=True)])
    variances = np.array([mean.variance + off.variance for mean, off in zip(found, offsets, strict=True)])
    value = float(share @ values)
    sd = float(share @ (variances + (values - value) ** 2)) ** 0.5
    return _within(value, sd, Widening.of(misses, number), level, bounds)


def from_scores(frame: Seen, level: float = 0.95) -> Expectation:
    """The mean loss of a frame from the model's own scores alone, with the interval of a model that may be as far off
    as models are: nothing has been held against labels yet."""
    if OWN not in frame.variables or not len(frame):
        raise InputError(f"the variable {OWN!r} is needed, which is the model's own chance to be wrong")
    value = float(np.clip(frame.variables[OWN], 0, 1).mean(dtype=np.float64))
    sd = FIRST[-1] * max((value * (1 - value)) ** 0.5, 2 * SMALLEST)
    return _within(value, sd, Widening.of((), 0), level, (0.0, 1.0))


def _off(design: Design, by: Calibration, every: Seen, past: Sequence[Past], number: int, unit: float) -> Ahead:
    """By how much a calibration will be off, from the weighted mean residual of each round before."""
    guessed = expected(design, design.columns(every), design.offset(every), by.coefficients)
    offsets, variances, start = [], [], 0
    for each in past:
        g = guessed[start : start + len(each.losses)]
        start += len(g)
        residual, share = each.losses - g, each.shares
        off = float(share @ residual)
        seen = float(share**2 @ (residual - off) ** 2) * len(g) / max(len(g) - 1, 1)
        by_model = float(share**2 @ (g * (1 - g))) if design.binary else (unit / 10) ** 2 / len(g)
        offsets.append(off)
        variances.append(max(seen, by_model))
    return ahead(offsets, variances, [each.number for each in past], number, unit)


def _within(value: float, sd: float, by: Widening, level: float, bounds: tuple[float, float]) -> Expectation:
    half = by.half(sd, level)
    inside, low, high = (float(np.clip(each, *bounds)) for each in (value, value - half, value + half))
    return Expectation(inside, low, high, sd, by.factor)
