"""Intervals of the mean over a part of the frame, under any linear estimator."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from opmon.estimators._counts import weighted_counts
from opmon.estimators._linear import LinearEstimator
from opmon.estimators._losses import EQUAL, UNBOUNDED, Interval, freedom_of, hall
from opmon.estimators._means import classes_interval
from opmon.estimators.intervals import wilson
from opmon.types import Sample

SIGNS = 16
WHOLE = 1e-9
ROUNDING = 1e-12
BORROWED = 5
"""The number of answers from outside the slice that speak for the spread inside it."""
TELLING = 10
"""Fewer draws say too little of a share: bounds that hold whatever it is, and no more."""
HEAVY = 15.0
"""Draws of a class in the slice that stand for more than this, relative to the mean draw, hardly see it; a defensive
share of 0.1 keeps them under 10 on average."""


@dataclass(frozen=True, eq=False)
class Part:
    """The answered draws inside a slice: ``weight`` sums to 1 over them and is 0 outside, ``mean`` is their mean value.

    Each counts as often as its mass says: once in a slice, twice where a ratio has it twice in its denominator.

    ``variance`` is that of the mean by linearisation; ``unit`` is what it would be if the values had variance 1 and
    nothing to do with the design, so that ``1/unit`` counts draws: fewer for unequal weights, more where the frame is
    nearly drawn whole. ``unit`` is the mean of the variances of random signs.
    """

    inside: NDArray[np.bool_]
    weight: NDArray[np.float64]
    values: NDArray[np.float64]
    mean: float
    variance: float
    unit: float

    @classmethod
    def of(
        cls,
        estimator: LinearEstimator,
        sample: Sample,
        values: NDArray[np.float64],
        mass: NDArray[np.float64],
        unit: float | None = None,
    ) -> Part:
        """The part with these masses; ``unit`` is that of the same masses where it is known already."""
        a, inside = estimator.coefficients(sample) * mass, mass > 0
        total = float(a.sum())
        v = np.where(inside, values, 0.0)
        mean, variance = float(a @ v) / total, 0.0
        if np.ptp(v[inside]) <= ROUNDING * np.abs(v[inside]).max():
            mean = float(v[inside][0])
        else:
            variance = estimator.variance(sample, mass * (v - mean) / total)
        return cls(
            inside, a / total, v, mean, variance, _unit(estimator, sample, mass / total) if unit is None else unit
        )

    @property
    def negative(self) -> Part:
        """The same with the values' signs changed."""
        return replace(self, values=-self.values, mean=-self.mean)

    @property
    def heard(self) -> int:
        return int(self.inside.sum())

    @property
    def known(self) -> bool:
        """Whether the slice was drawn whole, so that nothing about it is left to estimate."""
        return self.unit * self.heard <= WHOLE

    @property
    def tells(self) -> bool:
        """Whether there are enough draws to say more than bounds."""
        return self.heard >= TELLING and self.draws >= TELLING / 2

    @property
    def draws(self) -> float:
        """``(Σw)²/Σw²``: how many draws of equal weight these are worth; those at hand if they have one weight."""
        return float(1 / (self.weight @ self.weight))

    @property
    def another(self) -> float:
        """What one more draw would weigh that adds to the variance as those at hand do: ``unit`` for equal weights."""
        return self.unit * self.draws**2 * float((self.weight**3).sum())


def _unit(estimator: LinearEstimator, sample: Sample, mass: NDArray[np.float64]) -> float:
    """The mean of the variances of random signs with these masses."""
    if int(sample.answered.sum()) == 1 < sample.draw.frame_size:
        return 1.0
    signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(SIGNS, len(mass)))
    return float(np.mean([estimator.variance(sample, mass * sign) for sign in signs]))


def share_bounds(part: Part, level: float) -> tuple[float, float]:
    """The mid-P interval of a weighted share, or the exact one where there are too few draws to say more.

    The rarer of right and wrong is counted: its share ``F = Σ w_k`` over the draws that are so. With equal weights the
    bounds are quantiles of the beta distributions ``B(x, n − x + 1)`` and ``B(x + 1, n − x)`` of ``x`` in ``n``, mid-P
    those of their mean. With others ``x = F²/v`` and ``n = F/v``, with ``v = Σ w_k²`` for the first, or more where the
    design says so, and one more draw in ``F`` and ``v`` for the second. What it weighs is the mean of the weights by
    what each adds to the variance, ``Σw³/Σw²``: failures that were not seen come with heavy weights. (Fay and Kim,
    Biometrical Journal 59, 2017, take the largest weight, for rates of Poisson counts: that is four times as wide where
    a single draw weighs ten times the others. With the mean weight of a draw, ``Σw²``, slices whose failures have
    nothing to do with the variable were covered in 0.90 to 0.95 by 800 draws of SUPS, now in 0.95 to 1.0; adaptive
    weights differ too little to tell.) All weights are taken with what the finite population leaves of the variance.
    As far as weights are unequal the variance is estimated, and the level raised to that of Student's quantile.
    """
    rare = part.values < 0.5 if part.mean >= 0.5 else part.values >= 0.5
    weight, seen = part.weight[part.inside], rare[part.inside]
    share = float(weight[seen].sum())
    left = part.unit * part.draws
    spread = max(left * float((weight[seen] ** 2).sum()), part.variance / max(1 - share, ROUNDING))
    unequal = max(1 - part.draws / part.heard, ROUNDING)
    t = float(stdtrit(max(part.draws - 1, 1.0) / unequal, 0.5 + level / 2))
    low, high = weighted_counts(share, spread, part.another, min(2 * float(ndtr(t)) - 1, 1 - ROUNDING), mid=part.tells)
    return (1 - high, 1 - low) if part.mean >= 0.5 else (low, high)


def hidden_bounds(part: Part, sample: Sample, level: float) -> tuple[float, float] | None:
    """A wider interval where the draws in the slice hardly see a class of similar draw probability; else None.

    Such a class may hold a part of the slice of which nothing was drawn: taken to be as large as it is in the frame.
    Where there are too few draws to say more than bounds, any class may be one.
    """
    draw = sample.draw
    if not {"probability", "stratum"} <= draw.columns.keys() or "stratum_size" not in draw.constants:
        return None
    sizes, stratum = np.asarray(draw.constants["stratum_size"]), draw.columns["stratum"]
    inside = part.inside
    drawn = np.bincount(stratum[inside], minlength=len(sizes))
    if part.tells and (sizes / sizes.sum() <= HEAVY * drawn / drawn.sum()).all():
        return None
    low, high = classes_interval(1 - part.values[inside], part.weight[inside], stratum[inside], sizes, level)
    return 1 - high, 1 - low


def value_bounds(
    part: Part, others: NDArray[np.float64], weights: NDArray[np.float64], highest: float, level: float
) -> Interval:
    """The wider of Hall's and Student's bound on either side, for values no larger than ``highest``.

    A slice of ten skewed losses seldom shows how far they spread. So the variance is that of ``heard − 1`` answers
    joined with ``BORROWED`` more whose spread, relative to their mean, is that of all answers (``others`` with their
    ``weights``), unless the slice spreads farther; and a third of the degrees of freedom count.
    """
    if part.heard == 1:
        return -math.inf, highest, (UNBOUNDED,)
    if part.variance <= 0:
        above = wilson(0.0, 1 / part.unit, level).high
        return -math.inf, part.mean + above * (highest - part.mean), (EQUAL,)
    variance = _joined(part, others, weights, highest)
    terms = part.weight[part.inside] * (part.values[part.inside] - part.mean)
    skewness = float((terms**3).sum()) / part.variance**1.5
    freedom = min(freedom_of(terms), max((part.draws - 1) / 3, 2.0))
    bounds = [hall(part.mean, math.sqrt(variance), skew, freedom, level) for skew in (skewness, 0.0)]
    return min(low for low, _, _ in bounds), min(max(high for _, high, _ in bounds), highest), ()


def _joined(part: Part, others: NDArray[np.float64], weights: NDArray[np.float64], highest: float) -> float:
    if not math.isfinite(highest):
        return part.variance
    losses, share = highest - others, weights / weights.sum()
    centre = float(share @ losses)
    relative = float(share @ (losses - centre) ** 2) / centre**2 if centre > 0 else 0.0
    borrowed = max(relative * (highest - part.mean) ** 2 * part.unit, part.variance)
    return ((part.heard - 1) * part.variance + BORROWED * borrowed) / (part.heard - 1 + BORROWED)
