"""Moments per stratum, and the interval of a stratified mean of unbounded losses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.estimators.intervals import losses
from opmon.estimators.means_core import UNBOUNDED


@dataclass(frozen=True, eq=False)
class StratumMoments:
    """Counts, means, variances and third central moments per stratum, and the sizes ``N_h``."""

    sizes: NDArray[np.int64]
    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    thirds: NDArray[np.float64]

    @classmethod
    def of(cls, y: NDArray[np.float64], stratum: NDArray[np.int64], sizes: NDArray[np.int64]) -> StratumMoments:
        k = len(sizes)
        n = np.bincount(stratum, minlength=k).astype(np.float64)
        means = np.bincount(stratum, weights=y, minlength=k) / np.maximum(n, 1)
        deviation = y - means[stratum]
        squares = np.bincount(stratum, weights=deviation**2, minlength=k)
        overall = y - y.mean()
        pooled = float((overall**2).sum()) / max(len(y) - 1, 1)
        variances = np.where(n > 1, squares / np.maximum(n - 1, 1), pooled)
        cubes = np.bincount(stratum, weights=deviation**3, minlength=k)
        thirds = np.where(n > 1, cubes / np.maximum(n, 1), float((overall**3).mean()))
        return cls(sizes, n, means, variances, thirds)

    @property
    def variance(self) -> float:
        """``Σ (N_h/N)² (1 − n_h/N_h) s_h²/n_h`` over the strata that have an answer."""
        seen = self.counts > 0
        share = self.sizes[seen] / self.sizes[seen].sum()
        n = self.counts[seen]
        rest = np.maximum(0.0, 1 - n / self.sizes[seen])
        return float((share**2 * rest * self.variances[seen] / n).sum())


def stratified_losses(moments: StratumMoments, level: float) -> tuple[float, float, tuple[str, ...]]:
    """Hall's interval of the stratified mean; strata that were drawn whole add no width."""
    seen = moments.counts > 0
    if moments.counts.sum() < 2 and moments.sizes.sum() > 1:
        return 0.0, math.inf, (UNBOUNDED,)
    rest = np.clip(1 - moments.counts / moments.sizes, 0.0, 1.0)[seen]
    share = moments.sizes[seen] / moments.sizes[seen].sum()
    thirds = moments.thirds[seen] * rest**1.5
    found = losses(
        share, moments.counts[seen], moments.means[seen], moments.variances[seen] * rest, level, third_moments=thirds
    )
    return found.low, found.high, found.notes
