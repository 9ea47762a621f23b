"""The estimator of DeepEST: every step estimates the mean, and the steps are averaged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.estimators._answers import answered, column, in_usual_units, represented, require_design, unit_free
from opmon.estimators._bets import WIDEST, answered_only, one_by_one, strata_of
from opmon.estimators._weighted import terms_variance, weighted_estimate, weighted_tally
from opmon.estimators.tally import Tally
from opmon.response import stands_for
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class DeepEstEstimator(Estimator):
    """Accuracy ``1 − (1/n) Σ_k z_k`` with ``z_k = (1/N)(Σ_{j<k} y_j + y_k / q_k)``, for both tasks; unbiased.

    ``q_k`` is the probability of the k-th draw given those before it, and the first draw is uniform. Given the past
    every ``z_k`` is unbiased, so their sample variance over ``n`` estimates the variance (Guerriero et al., ICSE 2021,
    equations 3 and 4). Equation 11 of DeepSample for regression is not the Hansen–Hurwitz total and is biased; here
    the squared errors take the place of the failures. As one sum, draw ``k`` has the coefficient
    ``a_k = (1/q_k + n − k) / (nN)``. The interval post-stratifies on the draw probability. Of the variance with
    replacement uniform steps leave the mean of ``(1 − (k − 1)/N)²``; to be safe with weights it is taken without the
    square.
    """

    bets: ClassVar[bool] = True

    @unit_free
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        return weighted_estimate(self, sample, level, _left(sample))

    @in_usual_units
    def tally(self, sample: Sample) -> Tally:
        """The tally of the draws, for an interval over several rounds."""
        return weighted_tally(self, sample)

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        require_design(sample, "deepest")
        n, N = len(sample.draw), sample.draw.frame_size
        later = np.arange(n - 1, -1, -1)
        counted = represented(sample)
        return np.asarray(counted * (1 / column(sample.draw, "probability") + later) / (n * N))

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``, from the steps that have an answer."""
        answers = answered(sample)
        counted = represented(sample)
        y = np.where(answers, values, 0.0) * counted
        seen = np.cumsum(y) - y
        steps = (seen + y / column(sample.draw, "probability")) / sample.draw.frame_size
        return terms_variance(steps) * len(steps) / int(answers.sum())

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        stratum = strata_of(sample)
        single = one_by_one(sample, 1 / (sample.draw.frame_size * column(sample.draw, "probability")), stratum, WIDEST)
        counted = stands_for(sample, stratum) * answered_only(sample, losses)
        return replace(single, known=(np.cumsum(counted) - counted) / sample.draw.frame_size * sample.answered)


def _left(sample: Sample) -> float:
    """No less than what is left of the variance of as many draws with replacement."""
    before = np.flatnonzero(answered(sample)) / sample.draw.frame_size
    return float((1 - before).mean())
