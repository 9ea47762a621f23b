"""The Rao–Hartley–Cochran estimator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.estimators.core import answered, column, require_design
from opmon.estimators.means_core import response_weights
from opmon.estimators.weighted_core import weighted_estimate
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class RaoHartleyCochranEstimator:
    """Accuracy ``1 − (1/N) Σ_r y_r q_r / p_r``, one draw per random group ``r`` with ``q_r = Σ p`` over it; unbiased.

    Variance ``c Σ_r q_r (y_r / (N p_r) − θ̂)²`` with ``c = (Σ N_r² − N) / (N² − Σ N_r²)`` (Rao, Hartley and Cochran,
    J. R. Stat. Soc. B 24, 1962, equation 2.7; DeepSample, equations 5 and 6). Interval and non-response as for
    Hansen–Hurwitz: post-stratified on the draw probability.
    """

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        return weighted_estimate(self, sample, level)

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        require_design(sample, "rhc")
        draw = sample.draw
        stands_for = response_weights(answered(sample), column(draw, "stratum"))
        ratio = column(draw, "group_probability") / column(draw, "probability")
        return np.asarray(stands_for * ratio / draw.frame_size)

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``; groups without an answer are left out of it."""
        answers, N = answered(sample), sample.draw.frame_size
        if answers.sum() < 2:
            return 0.0
        q = column(sample.draw, "group_probability")[answers]
        p = column(sample.draw, "probability")[answers]
        N_r = column(sample.draw, "group_size")[answers] * (N / column(sample.draw, "group_size")[answers].sum())
        q = q / q.sum()
        squares = float((N_r**2).sum())
        terms = values[answers] / (N * p)
        return float((squares - N) / (N * N - squares) * (q * (terms - q @ terms) ** 2).sum())
