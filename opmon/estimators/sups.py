"""The Hansen–Hurwitz estimator: draws with replacement and known, unequal probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.estimators._answers import answered, column, in_usual_units, represented, require_design, unit_free
from opmon.estimators._bets import WIDEST, one_by_one, strata_of
from opmon.estimators._weighted import terms_variance, weighted_estimate, weighted_tally
from opmon.estimators.tally import Tally
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class HansenHurwitz(Estimator):
    """Accuracy ``1 − (1/n) Σ y_k / (N p_k)`` from draws with probabilities ``p_k``; unbiased.

    The variance is that of ``n`` independent terms, divided by ``n`` (Hansen and Hurwitz, Ann. Math. Stat. 14, 1943;
    DeepSample, equations 3 and 4). The usual t interval covers 57 to 87 % instead of 95 % where the variable is the
    confidence: it does not know of the failures not yet seen in the large, lightly sampled bulk. The interval here
    post-stratifies on the draw probability instead; it is wide while few draws fall into the bulk, and rightly so.

    Fails when ``p`` is tiny where failures are (λ = 0 and an overconfident model): unbiased still, but a rare failure
    in the bulk moves the estimate far. Draws without an answer are represented by those of similar probability.
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
        require_design(sample, "sups")
        counted = represented(sample)
        n, N = len(sample.draw), sample.draw.frame_size
        return np.asarray(counted / (n * N * column(sample.draw, "probability")))

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        answers = answered(sample)
        return terms_variance((self.coefficients(sample)[answers] * values[answers]) * answers.sum())

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        return one_by_one(
            sample, 1 / (sample.draw.frame_size * column(sample.draw, "probability")), strata_of(sample), WIDEST
        )
