"""Arithmetic that several designs share: plain means, and intervals of means of weighted terms."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.estimators._answers import answered, estimate_of
from opmon.estimators._counts import counted, mid_p
from opmon.estimators._losses import mean_of, moments_of
from opmon.estimators._skewed_score import cautious, skewed_score_bounds
from opmon.estimators._weighted_score import KNOWN
from opmon.estimators.intervals import effective_size, wilson
from opmon.estimators.tally import Tally
from opmon.problems import is_binary
from opmon.response import likelihoods
from opmon.types import Estimate, Sample

ProportionInterval = Literal["mid-p", "exact", "wilson"]


def mean_tally(sample: Sample, replacement: bool) -> Tally:
    """The tally of plain draws, with the frame as one part."""
    answers = answered(sample)
    y, w = sample.outcomes[answers], mean_coefficients(sample)[answers]
    n, N, one = len(y), sample.draw.frame_size, np.ones(1)
    mean, left = float(w @ y), 1.0 if replacement else (N - n) / max(N - 1, 1)
    if not is_binary(y, sample.problem):
        return Tally.of(one, n * one, left * one, moments_of(mean + n * w * (y - mean)))
    draws = 2 * KNOWN if left <= 0 else float(1 / (w @ w)) / left
    return Tally.of_shares(one, draws * one, mean * one)


def mean_estimate(sample: Sample, *, replacement: bool, interval: ProportionInterval, level: float) -> Estimate:
    """``1 − ȳ`` of equally likely draws, with the finite population where they are without replacement.

    With a propensity the answers weigh ``1/π``, and count as ``(Σw)²/Σw²`` draws.
    """
    answers = answered(sample)
    y, w = sample.outcomes[answers], mean_coefficients(sample)[answers]
    n, N, mean = len(y), sample.draw.frame_size, float(w @ y)
    error = math.sqrt(mean_variance(sample, sample.outcomes, replacement)) if n > 1 else None
    notes: tuple[str, ...] = ()
    name: str = interval
    if not is_binary(y, sample.problem):
        name = "hall"
        terms = mean + n * w * (y - mean)
        low, high, notes = mean_of(terms, level, left=1.0 if replacement else (N - n) / max(N - 1, 1))
    elif sample.propensity is not None:
        name = "weighted mid-p"
        alike = float(1 / (w @ w))
        draws = alike if replacement else alike * effective_size(n, N) / n
        low, high = mid_p(mean * draws, draws, level) if math.isfinite(draws) else (mean, mean)
    elif interval == "wilson":
        low, high, _ = wilson(mean, n, level, None if replacement else N)
    else:
        low, high = counted(int(y.sum()), n, level, None if replacement else N, interval == "mid-p")
    method = f"{sample.draw.design}/{name}"
    return estimate_of(sample, mean, low, high, method=method, level=level, standard_error=error, notes=notes)


def mean_coefficients(sample: Sample) -> NDArray[np.float64]:
    """``a_k`` of a plain mean: one over the answers, or in proportion to the draws they stand for; 0 without one."""
    answered(sample)
    weight = likelihoods(sample)
    return np.asarray(weight / weight.sum())


def mean_variance(sample: Sample, values: NDArray[np.float64], replacement: bool) -> float:
    """``(1 − f) n/(n − 1) Σ a_k² (v_k − v̄)²``: ``(1 − f) s²/n`` for equal weights; 0 for a census or a single value."""
    answers = answered(sample)
    v, a, n = values[answers], mean_coefficients(sample)[answers], int(answers.sum())
    if n < 2:
        return 0.0
    left = 1.0 if replacement else max(0.0, 1 - n / sample.draw.frame_size)
    return left * n / (n - 1) * float(a**2 @ (v - a @ v) ** 2)


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
    m, rate = class_rates(y, weight, stratum, len(sizes))
    m = m / np.maximum(left, 1e-12)
    return skewed_score_bounds(sizes / sizes.sum(), m, m * rate, level, cautious(level))


def class_rates(
    y: NDArray[np.float64], weight: NDArray[np.float64], stratum: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``m_h`` and ``ȳ_h`` of ``count`` classes: effective draws and weighted failure rate."""
    sums = np.bincount(stratum, weights=weight, minlength=count)
    squares = np.bincount(stratum, weights=weight**2, minlength=count)
    failed = np.bincount(stratum, weights=weight * y, minlength=count)
    m = np.divide(sums**2, squares, out=np.zeros(count), where=sums > 0)
    return m, np.divide(failed, sums, out=np.zeros(count), where=sums > 0)
