"""The mean of a CES sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.estimators._answers import require_design, unit_free
from opmon.estimators._means import mean_coefficients, mean_estimate, mean_variance
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class CrossEntropyEstimator(Estimator):
    """Accuracy ``1 − ȳ``, as Li et al. (ESEC/FSE 2019) estimate it; the interval is that of simple random sampling.

    **Not unbiased**: CES picks groups for being typical, so inputs have unequal and unknown probabilities, and the
    bias grows with the budget on hard tasks. No interval from the sample alone can account for that; every
    estimate says so in its notes. Take the default sampler where the interval matters.
    """

    @unit_free
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        require_design(sample, "ces")
        found = mean_estimate(sample, replacement=False, interval="mid-p", level=level)
        note = "CES is not unbiased: the interval does not account for the choice of typical inputs"
        return Estimate(**{name: getattr(found, name) for name in found.__slots__} | {"notes": (*found.notes, note)})

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        require_design(sample, "ces")
        return mean_coefficients(sample)

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        return mean_variance(sample, values, replacement=False)
