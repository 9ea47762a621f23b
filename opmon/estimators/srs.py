"""The mean of a simple random sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.errors import InputError
from opmon.estimators._answers import constant, in_usual_units, require_design, unit_free
from opmon.estimators._bets import one_by_one
from opmon.estimators._means import ProportionInterval, mean_coefficients, mean_estimate, mean_tally, mean_variance
from opmon.estimators.tally import Tally
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class SimpleRandomEstimator(Estimator):
    """Accuracy ``1 − ȳ`` from draws that were all equally likely; unbiased.

    ``ȳ = (1/n) Σ y_k`` over the ``n`` draws with an answer, variance ``(1 − f) s² / n`` with ``f = n/N`` without
    replacement and 0 with it (Cochran, Sampling Techniques, 1977, theorems 2.1 and 2.2). Respondents stand for
    those who have not answered: right while answering has nothing to do with being wrong.

    ``interval`` is for classification: ``mid-p`` (default: covers 95 % on average, hypergeometric without
    replacement), ``exact`` (at least 95 % whatever the truth, 5 to 8 % wider) or ``wilson``. Squared errors get
    Hall's skewness-corrected interval.

    >>> from opmon.types import Draw
    >>> draw = Draw("srs", 4, np.arange(4), constants={"replacement": np.array(False)})
    >>> found = SimpleRandomEstimator().estimate(Sample(draw, np.array([0.0, 0.0, 0.0, 1.0])))
    >>> found.low, found.value, found.high
    (0.75, 0.75, 0.75)
    """

    bets: ClassVar[bool] = True
    assisted: ClassVar[bool] = True

    interval: ProportionInterval = "mid-p"
    """How the interval is made."""

    def __post_init__(self) -> None:
        if self.interval not in ("mid-p", "exact", "wilson"):
            raise InputError(f"interval must be 'mid-p', 'exact' or 'wilson'; got {self.interval!r}")

    @unit_free
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        return mean_estimate(sample, replacement=self._replacement(sample), interval=self.interval, level=level)

    @in_usual_units
    def tally(self, sample: Sample) -> Tally:
        """The tally of the draws, for an interval over several rounds."""
        return mean_tally(sample, self._replacement(sample))

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        return mean_coefficients(sample)

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        return mean_variance(sample, values, self._replacement(sample))

    def cells(self, sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        count = len(sample.draw)
        drawn = 0.0 if self._replacement(sample) else float(sample.answered.sum()) / sample.draw.frame_size
        return np.zeros(count, dtype=np.int64), np.full(count, max(1 - drawn, 0.0))

    def _replacement(self, sample: Sample) -> bool:
        require_design(sample, "srs")
        return bool(constant(sample.draw, "replacement"))

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        return one_by_one(sample, sample.answered.astype(np.float64), np.zeros(len(sample.draw), dtype=np.int64), 1.0)
