"""The estimate from draws with unequal probabilities: the mean of weighted terms, with an honest interval."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from opmon.estimators._answers import column, constant, estimate_of
from opmon.estimators._losses import EQUAL, FEW, ROUNDING, Interval, classes_of, mean_of, moments_of
from opmon.estimators._means import class_rates, classes_interval
from opmon.estimators._skewed_score import cautious
from opmon.estimators.intervals import wilson
from opmon.estimators.tally import Tally
from opmon.problems import is_binary
from opmon.types import Estimate, Sample

BULK_NOTE = (
    "more than twice as wide as under simple random sampling, because few draws fall on the inputs that the variable "
    "trusts: more labels, a larger defensive share, or the sampler srs make it shorter"
)


class Weighted(Protocol):
    """An estimator that is one weighted sum, with a variance of its own."""

    def coefficients(self, sample: Sample) -> NDArray[np.float64]: ...

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float: ...


def weighted_estimate(estimator: Weighted, sample: Sample, level: float, left: float = 1.0) -> Estimate:
    """``1 − Σ a_k y_k`` where ``a`` (the coefficients) is 0 where there is no answer; post-stratified interval.

    ``left`` is what a design without replacement leaves of the variance: 0 where it has drawn the whole frame. The
    classes do not share in it alike, so no bound comes closer than the normal one.
    """
    coefficients, answers = estimator.coefficients(sample), sample.answered
    stratum, sizes = column(sample.draw, "stratum"), np.asarray(constant(sample.draw, "stratum_size"))
    y, a = sample.outcomes[answers], coefficients[answers]
    loss = float(a @ y)
    error = math.sqrt(estimator.variance(sample, sample.outcomes)) if len(y) > 1 else None
    notes: tuple[str, ...] = ()
    if is_binary(y, sample.problem):
        low, high = classes_interval(y, a, stratum[answers], sizes, level)
        if left < 1 and error is not None:
            nearer, near = classes_interval(y, a, stratum[answers], sizes, level, left)
            z = float(ndtri(0.5 + cautious(level) / 2))
            low, high = max(low, min(nearer, loss - z * error)), min(high, max(near, loss + z * error))
        name = "post-stratified score"
        plain, plainer, _ = wilson(min(max(loss, 0.0), 1.0), len(y), level)
        notes = (BULK_NOTE,) if high - low > 2 * (plainer - plain) else ()
    else:
        low, high, notes = _losses(y, a, stratum[answers], sizes, level, left)
        name = "hall"
    method = f"{sample.draw.design}/{name}"
    return estimate_of(sample, loss, low, high, method=method, level=level, standard_error=error, notes=notes)


def weighted_tally(estimator: Weighted, sample: Sample) -> Tally:
    """The tally of weighted draws: shares by class of similar probability, losses by the mean of all terms."""
    a, answers = estimator.coefficients(sample), sample.answered
    stratum, sizes = column(sample.draw, "stratum"), np.asarray(constant(sample.draw, "stratum_size"))
    y, a = sample.outcomes[answers], a[answers]
    if is_binary(y, sample.problem):
        m, rate = class_rates(y, a, stratum[answers], len(sizes))
        return Tally.of_shares(sizes / sizes.sum(), m, rate)
    one = np.ones(1)
    return Tally.of(one, len(y) * one, one, moments_of(a * y * len(y)))


def _losses(
    y: NDArray[np.float64],
    a: NDArray[np.float64],
    stratum: NDArray[np.int64],
    sizes: NDArray[np.int64],
    level: float,
    left: float,
) -> Interval:
    if len(y) > 1 and left > 0 and np.ptp(y) <= ROUNDING * y.max():
        # not that of the weighted terms, which differ: how many losses may be smaller than all that were seen
        smaller, _ = classes_interval(np.ones(len(y)), a, stratum, sizes, level, left)
        return smaller * float(y[0]), math.inf, (EQUAL,)
    if len(sizes) > 1 and (np.bincount(stratum, minlength=len(sizes)) < FEW).any():
        return classes_of(y, a, stratum, sizes, level, left)
    return mean_of(a * y * len(y), level, left)


def terms_variance(terms: NDArray[np.float64]) -> float:
    """The variance of the mean of independent terms, ``s²/n``; zero for a single one."""
    return float(terms.var(ddof=1)) / len(terms) if len(terms) > 1 else 0.0
