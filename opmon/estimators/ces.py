"""The mean of a CES sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.estimators._answers import in_usual_units, require_design, unit_free
from opmon.estimators._bets import one_by_one
from opmon.estimators._means import mean_coefficients, mean_estimate, mean_tally, mean_variance
from opmon.estimators.tally import Tally
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class CrossEntropyEstimator(Estimator):
    """Accuracy ``1 − ȳ``, as Li et al. (ESEC/FSE 2019) estimate it; the interval is that of simple random sampling.

    **Not unbiased**: CES picks groups for being typical, so inputs have unequal and unknown probabilities, and the
    bias grows with the budget on hard tasks. No interval from the sample alone can account for that; every
    estimate says so in its notes. Take the default sampler where the interval matters.
    """

    bets: ClassVar[bool] = True

    @unit_free
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        require_design(sample, "ces")
        mean = mean_estimate(sample, replacement=False, interval="mid-p", level=level)
        note = "CES is not unbiased: the interval does not account for the choice of typical inputs"
        return replace(mean, notes=(*mean.notes, note))

    @in_usual_units
    def tally(self, sample: Sample) -> Tally:
        """The tally of the draws, for an interval over several rounds."""
        require_design(sample, "ces")
        return mean_tally(sample, replacement=False)

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        require_design(sample, "ces")
        return mean_coefficients(sample)

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        return mean_variance(sample, values, replacement=False)

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        return one_by_one(sample, sample.answered.astype(np.float64), np.zeros(len(sample.draw), dtype=np.int64), 1.0)
