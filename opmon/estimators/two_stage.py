"""The estimator of 2-UPS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.estimators._answers import answered, column, constant, in_usual_units, represented, require_design, unit_free
from opmon.estimators._bets import one_by_one, strata_of
from opmon.estimators._weighted import terms_variance, weighted_estimate, weighted_tally
from opmon.estimators.tally import Tally
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class TwoStageEstimator(Estimator):
    """Accuracy ``1 − (1/(nN)) Σ_k y_k N_h / ψ_h``, averaged over the ``n`` draws; unbiased (DeepSample, equation 15).

    The released code averages over the strata that were hit instead, which is biased by up to +0.35. Variance from
    the ``n`` terms. The interval post-stratifies: given how many draws a stratum got they are a simple random sample
    of it. A stratum that was not drawn may hold any failure rate, and widens the interval by all of its share. No
    correction for the finite population: the interval is too wide where a stratum was drawn nearly whole.
    """

    bets: ClassVar[bool] = True

    @unit_free
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        return weighted_estimate(self, sample, level)

    @in_usual_units
    def tally(self, sample: Sample) -> Tally:
        """The tally of the draws, for an interval over several rounds."""
        return weighted_tally(self, sample)

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        require_design(sample, "two_stage")
        draw = sample.draw
        stratum = column(draw, "stratum")
        weight = constant(draw, "stratum_size") / (draw.frame_size * constant(draw, "stratum_probability"))
        return np.asarray(represented(sample) * weight[stratum] / len(draw))

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        answers = answered(sample)
        return terms_variance((self.coefficients(sample)[answers] * values[answers]) * answers.sum())

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        constants = sample.draw.constants
        weight = constants["stratum_size"] / (sample.draw.frame_size * constants["stratum_probability"])
        return one_by_one(sample, weight[strata_of(sample)], strata_of(sample), float(weight.max()))
