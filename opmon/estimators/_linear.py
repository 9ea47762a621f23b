"""Linear estimators: their coefficients, and the variance of any sum with them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opmon.estimators.tally import Tally
from opmon.types import Estimate, Sample


class LinearEstimator(Protocol):
    """An estimator whose mean loss is ``Σ a_k y_k`` with coefficients that the design alone decides.

    From these follow ratios, slices and model-assisted estimates under the same design.
    """

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate: ...

    def tally(self, sample: Sample) -> Tally | None:
        """The tally of the draws, for an interval over several rounds."""
        ...

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k``; 0 for a draw without an answer."""
        ...

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        ...

    def cells(self, sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The cell of each draw for a bootstrap, and what is left of the variance there."""
        ...
