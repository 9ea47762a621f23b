"""The Rao–Hartley–Cochran estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.estimators._answers import answered, column, in_usual_units, represented, require_design, unit_free
from opmon.estimators._bets import one_by_one, strata_of
from opmon.estimators._weighted import weighted_estimate, weighted_tally
from opmon.estimators.tally import Tally
from opmon.types import Estimate, Sample

WIDEST_TERM = 20.0
"""The largest weight of a draw that bets allow for: the sums of random groups lie apart, which doubles the usual."""


@dataclass(frozen=True)
class RaoHartleyCochranEstimator(Estimator):
    """Accuracy ``1 − (1/N) Σ_r y_r q_r / p_r``, one draw per random group ``r`` with ``q_r = Σ p`` over it; unbiased.

    Variance ``c Σ_r q_r (y_r / (N p_r) − θ̂)²`` with ``c = (Σ N_r² − N) / (N² − Σ N_r²)`` (Rao, Hartley and Cochran,
    J. R. Stat. Soc. B 24, 1962, equation 2.7; DeepSample, equations 5 and 6). Interval and non-response as for
    Hansen–Hurwitz: post-stratified on the draw probability. ``(n − 1) c`` is what is left of the variance of draws with
    replacement: nearly 1 for few draws, 0 for the whole frame.
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
        require_design(sample, "rhc")
        draw = sample.draw
        counted = represented(sample)
        ratio = column(draw, "group_probability") / column(draw, "probability")
        return np.asarray(counted * ratio / draw.frame_size)

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``; groups without an answer are left out of it."""
        answers, N = answered(sample), sample.draw.frame_size
        if answers.sum() < 2:
            return 0.0
        q = (represented(sample) * column(sample.draw, "group_probability"))[answers]
        p = column(sample.draw, "probability")[answers]
        q = q / q.sum()
        terms = values[answers] / (N * p)
        return _factor(sample) * float((q * (terms - q @ terms) ** 2).sum())

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        columns = sample.draw.columns
        ratio = columns["group_probability"] / (columns["probability"] * columns["group_size"])
        return one_by_one(sample, ratio, strata_of(sample), WIDEST_TERM)


def _factor(sample: Sample) -> float:
    """``c``, from the groups that have an answer, scaled up to the frame."""
    N, size = sample.draw.frame_size, column(sample.draw, "group_size")[sample.answered]
    squares = float(((size * (N / size.sum())) ** 2).sum())
    return max(squares - N, 0.0) / (N * N - squares)


def _left(sample: Sample) -> float:
    """What is left of the variance of as many draws with replacement."""
    heard = int(answered(sample).sum())
    if heard == sample.draw.frame_size:
        return 0.0
    return min((heard - 1) * _factor(sample), 1.0) if heard > 1 else 1.0
