"""The estimator of opmon's own sampler: stratified waves, combined with shares that were fixed in advance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.estimators._answers import answered, constant, estimate_of, in_usual_units, require_design, unit_free
from opmon.estimators._bets import answered_only, own_strata
from opmon.estimators._cells import Cells
from opmon.estimators._losses import Interval, Moments, sum_of
from opmon.estimators._skewed_score import cautious, skewed_score_bounds
from opmon.estimators.tally import Tally
from opmon.problems import is_binary
from opmon.types import Estimate, Sample
from opmon.types.draw import KIND


@dataclass(frozen=True)
class AdaptiveEstimator(Estimator):
    """Accuracy ``1 − Σ_t a_t θ̂_t`` from the waves ``t``; unbiased.

    ``θ̂_t = (Σ_{drawn before} y + Σ_h N_th ȳ_th) / N`` is the stratified estimate of wave ``t``, drawn from what the
    waves before have left: unbiased given them. ``a_t`` was fixed before the labels of wave ``t`` were asked for; the
    last wave takes what is left of the weight, so the estimate is valid after every wave.

    Variance ``Σ_t a_t² Σ_h (N_th/N)² (1 − n_th/N_th) s²_th / n_th``: the errors of the waves are uncorrelated; draws
    without an answer add what later waves would have known of them (:attr:`._cells.Cells.uncertain`). The
    interval of a share is the score interval over all strata, corrected for skewness
    (:mod:`_skewed_score`), for squared errors Hall's (:mod:`_losses`) joined with Student's. Both are made for
    96.5 % where 95 % is asked, the first only as far as it is not skew: at 95 % the coverage is 95 % on average over
    populations, and as low as 93 % on some. The caution costs up to 7 % of the width, of the 20 % or so that the
    design wins. Losses with tails as long as a log-normal's of shape 2 are beyond any of this: 85 to 90 %.

    Draws without an answer: the answers of a stratum stand for all of it; strata left with fewer than four are joined
    with their neighbours in score, and their answers weigh ``N_th/n_th``. This is right while answers are missing at
    random inside what was joined: neighbours in score answer at about the same rate, and whether an input is answered
    does not depend on its outcome. Where that rate falls from 0.9 to 0.2 at a step of the score, the bias was a quarter
    of the standard error at 200 draws.
    """

    bets: ClassVar[bool] = True
    assisted: ClassVar[bool] = True

    @unit_free
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        answers = self._checked(sample)
        cells = Cells.of(sample)
        y = sample.outcomes[answers]
        moments = cells.moments(sample.outcomes)
        loss = float(cells.coefficients[answers] @ y)
        known = loss - float(cells.uncertain @ moments[0])
        error = math.sqrt(self.variance(sample, sample.outcomes)) if len(y) > 1 else None
        notes: tuple[str, ...] = ()
        if is_binary(y, sample.problem):
            m = cells.effective
            low, high = skewed_score_bounds(cells.uncertain, m, m * moments[0], level, cautious(level))
            name = "score"
        else:
            low, high, notes = _losses(cells, moments, cautious(level))
            name = "hall"
        method = f"adaptive/{name}"
        return estimate_of(
            sample, loss, low + known, high + known, method=method, level=level, standard_error=error, notes=notes
        )

    @in_usual_units
    def tally(self, sample: Sample) -> Tally:
        """The tally of the draws, for an interval over several rounds."""
        answers, cells = self._checked(sample), Cells.of(sample)
        moments = cells.moments(sample.outcomes)
        known = float((cells.coefficients * np.nan_to_num(sample.outcomes)).sum() - cells.uncertain @ moments[0])
        if is_binary(sample.outcomes[answers], sample.problem):
            tally = Tally.of_shares(cells.uncertain, cells.effective, moments[0], cells.place, known)
            apart = KIND in sample.draw.constants and (cells.kind >= 0).all()
            return replace(tally, kind=cells.kind) if apart else tally
        return Tally.of(cells.uncertain, cells.count, cells.left, moments, cells.place, known)

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        self._checked(sample)
        return Cells.of(sample).coefficients

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        self._checked(sample)
        cells = Cells.of(sample)
        _, variance, _, _ = cells.moments(values)
        return float((cells.uncertain**2 * variance * cells.left / cells.count).sum())

    def cells(self, sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        self._checked(sample)
        cells = Cells.of(sample)
        return cells.cell, cells.left[cells.cell]

    def _checked(self, sample: Sample) -> NDArray[np.bool_]:
        require_design(sample, "adaptive")
        constant(sample.draw, "wave_share")
        return answered(sample)

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        return own_strata(sample, answered_only(sample, losses))


def _losses(cells: Cells, moments: Moments, level: float) -> Interval:
    """The wider of Hall's and Student's bound on either side."""
    mean, variance, third, fourth = moments
    low, high, notes = sum_of(cells.uncertain, cells.count, moments, cells.left, level)
    student = (mean, variance, np.zeros_like(third), fourth)
    other_low, other_high, _ = sum_of(cells.uncertain, cells.count, student, cells.left, level)
    return min(low, other_low), max(high, other_high), notes
