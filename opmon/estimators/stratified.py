"""The stratified mean: for SSRS and CSS."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.estimators._answers import answered, column, constant, estimate_of, in_usual_units, require_design, unit_free
from opmon.estimators._bets import in_waves, stratified
from opmon.estimators._skewed_score import skewed_score_bounds
from opmon.estimators._stratified import StratumMoments, stratified_losses, stratum_cells
from opmon.estimators._weighted_score import KNOWN
from opmon.estimators.tally import Tally
from opmon.problems import is_binary
from opmon.response import shares
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class StratifiedEstimator(Estimator):
    """Accuracy ``1 − Σ_h (N_h/N) ȳ_h`` from simple random samples inside strata; unbiased.

    Variance ``Σ (N_h/N)² (1 − n_h/N_h) s_h²/n_h`` (Cochran, 1977, theorem 5.3). The interval of a share is the
    score interval over the strata, corrected for skewness, so a stratum with few draws and no failure counts by what
    it may hide; squared errors get Hall's interval.

    A stratum with a single draw has no ``s_h²``: it takes the variance of all draws. A stratum without any answer is
    carried by its neighbour in the value, and stands for anything between 0 and 1 in the interval, or between 0 and the
    largest loss seen.
    """

    bets: ClassVar[bool] = True
    assisted: ClassVar[bool] = True

    @unit_free
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        a = self.coefficients(sample)
        answers = sample.answered
        y, sizes = sample.outcomes[answers], np.asarray(constant(sample.draw, "stratum_size"))
        moments = StratumMoments.of(sample, sample.outcomes, sizes)
        error = math.sqrt(moments.variance) if len(y) > 1 else None
        notes: tuple[str, ...] = ()
        if is_binary(y, sample.problem):
            m = moments.effective
            low, high = skewed_score_bounds(sizes / sizes.sum(), m, m * moments.means, level)
            name = "stratified score"
        else:
            low, high, notes = stratified_losses(moments, level)
            name = "hall"
        method = f"{sample.draw.design}/{name}"
        loss = float(a[answers] @ y)
        return estimate_of(sample, loss, low, high, method=method, level=level, standard_error=error, notes=notes)

    @in_usual_units
    def tally(self, sample: Sample) -> Tally:
        """The tally of the draws, for an interval over several rounds."""
        require_design(sample, "ssrs", "css")
        answered(sample)
        sizes = np.asarray(constant(sample.draw, "stratum_size"))
        moments = StratumMoments.of(sample, sample.outcomes, sizes)
        if is_binary(sample.outcomes[sample.answered], sample.problem):
            return Tally.of_shares(sizes / sizes.sum(), np.minimum(moments.effective, 2 * KNOWN), moments.means)
        seen = moments.heard > 0
        left = np.clip(1 - moments.heard / sizes, 0.0, 1.0)[seen]
        return Tally.of(moments.share[seen], moments.counts[seen], left, moments.central(seen))

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        require_design(sample, "ssrs", "css")
        answered(sample)
        sizes = np.asarray(constant(sample.draw, "stratum_size"))
        return np.asarray(shares(sample, column(sample.draw, "stratum"), sizes) / sizes.sum())

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        answered(sample)
        return StratumMoments.of(sample, values, np.asarray(constant(sample.draw, "stratum_size"))).variance

    def cells(self, sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return stratum_cells(sample)

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        none = np.zeros(len(sample.draw))
        factors = stratified(sample, sample.draw.constants["stratum_size"])
        return in_waves(factors, none, sample.answered.astype(np.float64), none)
