"""Moments per stratum, and the interval of a stratified mean of unbounded losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.estimators._losses import Interval, Moments, sum_of

FEW = 10
"""The least number of draws for a fourth moment."""

SILENT = "their mean loss is only taken to be no larger than the largest loss seen"


@dataclass(frozen=True, eq=False)
class StratumMoments:
    """Counts, means, variances and higher central moments per stratum, and the sizes ``N_h``.

    A stratum of fewer than ``FEW`` draws has no fourth moment of its own, one of a single draw no variance: it takes
    those of all draws.
    """

    sizes: NDArray[np.int64]
    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    thirds: NDArray[np.float64]
    fourths: NDArray[np.float64]
    largest: float
    """The largest loss seen."""

    @classmethod
    def of(cls, y: NDArray[np.float64], stratum: NDArray[np.int64], sizes: NDArray[np.int64]) -> StratumMoments:
        k = len(sizes)
        n = np.bincount(stratum, minlength=k).astype(np.float64)
        means = np.bincount(stratum, weights=y, minlength=k) / np.maximum(n, 1)
        deviation = y - means[stratum]
        second = deviation * deviation
        squares = np.bincount(stratum, weights=second, minlength=k)
        overall = y - y.mean()
        pooled = float((overall**2).sum()) / max(len(y) - 1, 1)
        variances = np.where(n > 1, squares / np.maximum(n - 1, 1), pooled)
        cubes = np.bincount(stratum, weights=second * deviation, minlength=k)
        thirds = np.where(n > 1, cubes / np.maximum(n, 1), float((overall * overall * overall).mean()))
        fourths = np.bincount(stratum, weights=second * second, minlength=k) / np.maximum(n, 1)
        residual = float(second.mean())
        kurtosis = float((second * second).mean()) / residual**2 if residual > 0 else 3.0
        fourths = np.where(n < FEW, kurtosis * variances**2, fourths)
        return cls(sizes, n, means, variances, thirds, fourths, float(y.max()))

    def central(self, which: NDArray[np.bool_]) -> Moments:
        """The moments of some strata, as the intervals want them."""
        return self.means[which], self.variances[which], self.thirds[which], self.fourths[which]

    @property
    def variance(self) -> float:
        """``Σ (N_h/N)² (1 − n_h/N_h) s_h²/n_h`` over the strata that have an answer."""
        seen = self.counts > 0
        share = self.sizes[seen] / self.sizes[seen].sum()
        n = self.counts[seen]
        rest = np.maximum(0.0, 1 - n / self.sizes[seen])
        return float((share**2 * rest * self.variances[seen] / n).sum())

    @property
    def effective(self) -> NDArray[np.float64]:
        """``n_h (N_h − 1)/(N_h − n_h)``: as many draws with replacement tell as much."""
        left = np.maximum(self.sizes - self.counts, 0)
        whole = (left == 0) & (self.counts > 0)
        return np.where(whole, 1e15, self.counts * np.maximum(self.sizes - 1, 1) / np.maximum(left, 1))


def stratified_losses(moments: StratumMoments, level: float) -> Interval:
    """Hall's interval of the stratified mean; strata that were drawn whole add no width.

    Strata without any answer hold anything between 0 and the largest loss seen.
    """
    seen = moments.counts > 0
    left = np.clip(1 - moments.counts / moments.sizes, 0.0, 1.0)[seen]
    share = moments.sizes[seen] / moments.sizes[seen].sum()
    low, high, notes = sum_of(share, moments.counts[seen], moments.central(seen), left, level)
    if seen.all():
        return low, high, notes
    silent = float(moments.sizes[~seen].sum() / moments.sizes.sum())
    note = f"strata of {silent:.1%} of the inputs have no answer; {SILENT}"
    return (1 - silent) * low, (1 - silent) * high + silent * moments.largest, (*notes, note)
