"""Arithmetic that several designs share: plain means, means of weighted terms, and who stands for whom."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.estimators._answers import answered, estimate_of, is_binary
from opmon.estimators._counts import counted
from opmon.estimators._losses import mean_of
from opmon.estimators._skewed_score import cautious, skewed_score_bounds
from opmon.estimators.intervals import wilson
from opmon.types import Estimate, Sample

ProportionInterval = Literal["mid-p", "exact", "wilson"]


def mean_estimate(sample: Sample, *, replacement: bool, interval: ProportionInterval, level: float) -> Estimate:
    """``1 − ȳ`` of equally likely draws, with the finite population where they are without replacement."""
    y = sample.outcomes[answered(sample)]
    n, N = len(y), sample.draw.frame_size
    population = None if replacement else N
    error = math.sqrt(mean_variance(y, N, replacement)) if n > 1 else None
    notes: tuple[str, ...] = ()
    name: str = interval
    if not is_binary(y, sample.problem):
        name = "hall"
        low, high, notes = mean_of(y, level, left=1.0 if replacement else (N - n) / max(N - 1, 1))
    elif interval == "wilson":
        low, high, _ = wilson(float(y.mean()), n, level, population)
    else:
        low, high = counted(int(y.sum()), n, level, population, interval == "mid-p")
    method = f"{sample.draw.design}/{name}"
    return estimate_of(
        sample, float(y.mean()), low, high, method=method, level=level, standard_error=error, notes=notes
    )


def mean_variance(values: NDArray[np.float64], frame_size: int, replacement: bool) -> float:
    """``(1 − f) s² / n``; zero for a census and for a single value."""
    n = len(values)
    if n < 2:
        return 0.0
    return float(values.var(ddof=1)) / n * (1.0 if replacement else max(0.0, 1 - n / frame_size))


def response_weights(answers: NDArray[np.bool_], stratum: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each answer stands for: the draws of its class divided by the answers there, 0 where there is no answer.

    All ones with full response; a class without any answer is carried by the others.
    """
    drawn = np.bincount(stratum, minlength=int(stratum.max()) + 1)
    heard = np.bincount(stratum[answers], minlength=len(drawn))
    factor = np.divide(drawn, heard, out=np.zeros(len(drawn)), where=heard > 0)
    weights = factor[stratum] * answers
    return np.asarray(weights * (len(answers) / weights.sum()))


def classes_interval(
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    stratum: NDArray[np.int64],
    sizes: NDArray[np.int64],
    level: float,
    left: float | NDArray[np.float64] = 1.0,
) -> tuple[float, float]:
    """An interval of a failure rate from weighted draws, post-stratified in classes ``h`` of similar probability.

    Each class holds ``m_h = (Σw)²/Σw²`` effective draws at the weighted failure rate ``ȳ_h`` and stands for its share
    ``N_h/N`` of the frame; the score interval of their sum follows, corrected for skewness. A class with few draws may
    hide failures that were not seen, and widens the interval by what it could hide. ``left`` multiplies the variance,
    of all classes or of each: less than 1 where the draws exhaust a finite population.
    """
    count = len(sizes)
    sums = np.bincount(stratum, weights=weight, minlength=count)
    squares = np.bincount(stratum, weights=weight**2, minlength=count)
    failed = np.bincount(stratum, weights=weight * y, minlength=count)
    m = np.divide(sums**2, squares, out=np.zeros(count), where=sums > 0)
    rate = np.divide(failed, sums, out=np.zeros(count), where=sums > 0)
    m = m / np.maximum(left, 1e-12)
    return skewed_score_bounds(sizes / sizes.sum(), m, m * rate, level, cautious(level))
