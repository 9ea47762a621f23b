"""The mean of a simple random sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators.core import accuracy, answered, constant, is_binary, require_design
from opmon.estimators.means_core import skewed_mean, skewness_of
from opmon.estimators.proportions_core import counted, effective
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class SimpleRandomEstimator:
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

    interval: Literal["mid-p", "exact", "wilson"] = "mid-p"

    def __post_init__(self) -> None:
        if self.interval not in ("mid-p", "exact", "wilson"):
            raise InputError(f"interval must be 'mid-p', 'exact' or 'wilson'; got {self.interval!r}")

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        require_design(sample, "srs")
        y = sample.outcomes[answered(sample)]
        n, N = len(y), sample.draw.frame_size
        replacement = bool(constant(sample.draw, "replacement"))
        rest = 1.0 if replacement else (N - n) / max(N - 1, 1)
        variance = float(y.var(ddof=1)) / n * (1.0 if replacement else 1 - n / N) if n > 1 else None
        name: str
        if is_binary(y):
            low, high = self._of_share(int(y.sum()), n, N, replacement, level)
            name = self.interval
        elif n > 1:
            low, high = _of_mean(y, rest, level)
            name = "hall"
        else:
            low, high, name = 0.0, (math.inf if rest else float(y[0])), "unbounded"
        error = None if variance is None else math.sqrt(variance)
        notes = () if math.isfinite(high) else ("one answer says nothing about the spread: no upper bound on the loss",)
        return accuracy(
            sample, float(y.mean()), low, high, method=f"srs/{name}", level=level, standard_error=error, notes=notes
        )

    def _of_share(self, failures: int, n: int, N: int, replacement: bool, level: float) -> tuple[float, float]:
        if self.interval == "wilson":
            left = 1.0 if replacement else (N - n) / max(N - 1, 1)
            return effective(failures / n, n / left, level) if left else (failures / n, failures / n)
        return counted(failures, n, level, None if replacement else N, self.interval == "mid-p")


def _of_mean(y: NDArray[np.float64], rest: float, level: float) -> tuple[float, float]:
    error = float(y.std(ddof=1)) * math.sqrt(rest / len(y))
    return skewed_mean(float(y.mean()), error, skewness_of(y), len(y), level)
