"""The estimate from draws with unequal probabilities: the mean of weighted terms, with an honest interval."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opmon.estimators.core import accuracy, column, constant, is_binary
from opmon.estimators.intervals import wilson
from opmon.estimators.losses_core import FEW, classes_of, mean_of
from opmon.estimators.means_core import classes_interval
from opmon.types import Estimate, Sample

BULK_NOTE = (
    "more than twice as wide as under simple random sampling, because few draws fall on the inputs that the variable "
    "trusts: more labels, a larger defensive share, or the sampler srs make it shorter"
)


class Weighted(Protocol):
    """An estimator that is one weighted sum, with a variance of its own."""

    def coefficients(self, sample: Sample) -> NDArray[np.float64]: ...

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float: ...


def weighted_estimate(estimator: Weighted, sample: Sample, level: float) -> Estimate:
    """``1 − Σ a_k y_k`` where ``a`` (the coefficients) is 0 where there is no answer; post-stratified interval."""
    coefficients, answers = estimator.coefficients(sample), sample.answered
    stratum, sizes = column(sample.draw, "stratum"), np.asarray(constant(sample.draw, "stratum_size"))
    y, a = sample.outcomes[answers], coefficients[answers]
    loss = float(a @ y)
    error = math.sqrt(estimator.variance(sample, sample.outcomes)) if len(y) > 1 else None
    notes: tuple[str, ...] = ()
    if is_binary(y):
        low, high = classes_interval(y, a, stratum[answers], sizes, level)
        name = "post-stratified score"
        plain, plainer, _ = wilson(min(max(loss, 0.0), 1.0), len(y), level)
        notes = (BULK_NOTE,) if high - low > 2 * (plainer - plain) else ()
    else:
        drawn = np.bincount(stratum[answers], minlength=len(sizes))
        if (drawn < FEW).any() and len(sizes) > 1:
            low, high, notes = classes_of(y, a, stratum[answers], sizes, level)
        else:
            low, high, notes = mean_of(a * y * len(y), level)
        name = "hall"
    method = f"{sample.draw.design}/{name}"
    return accuracy(sample, loss, low, high, method=method, level=level, standard_error=error, notes=notes)


def terms_variance(terms: NDArray[np.float64]) -> float:
    """The variance of the mean of independent terms, ``s²/n``; zero for a single one."""
    return float(terms.var(ddof=1)) / len(terms) if len(terms) > 1 else 0.0
