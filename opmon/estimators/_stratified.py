"""Moments per stratum, and the interval of a stratified mean of unbounded losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.estimators._losses import Interval, Moments, sum_of
from opmon.response import carriers, likelihoods
from opmon.types import Sample
from opmon.wording import percent

FEW = 10
"""The least number of draws for a fourth moment."""

ROUNDING = 1e-9
SILENT = "their mean loss is only taken to be no larger than the largest loss seen"


@dataclass(frozen=True, eq=False)
class StratumMoments:
    """Counts, means, variances and higher central moments per stratum, and the sizes ``N_h``.

    Answers weigh by the draws like them (:func:`opmon.response.likelihoods`); ``counts`` are ``(Σw)²/Σw²``. A stratum
    of fewer than ``FEW`` draws has no fourth moment of its own, one of a single draw no variance: it takes those of all
    draws.
    """

    sizes: NDArray[np.int64]
    heard: NDArray[np.int64]
    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    thirds: NDArray[np.float64]
    fourths: NDArray[np.float64]
    largest: float
    """The largest loss seen."""

    @classmethod
    def of(cls, sample: Sample, values: NDArray[np.float64], sizes: NDArray[np.int64]) -> StratumMoments:
        answers, k = sample.answered, len(sizes)
        y, stratum, w = values[answers], sample.draw.columns["stratum"][answers], likelihoods(sample)[answers]
        total = np.bincount(stratum, weights=w, minlength=k)
        squares = np.bincount(stratum, weights=w * w, minlength=k)
        n = np.divide(total**2, squares, out=np.zeros(k), where=squares > 0)
        scale = np.where(total > 0, total, 1.0)
        means = np.bincount(stratum, weights=w * y, minlength=k) / scale
        deviation = y - means[stratum]
        second = deviation * deviation
        powers = (second, second * deviation, second * second)
        square, third, fourth = (np.bincount(stratum, weights=w * power, minlength=k) / scale for power in powers)
        overall = y - y.mean()
        pooled = float((overall**2).sum()) / max(len(y) - 1, 1)
        several = n > 1 + ROUNDING
        variances = np.where(several, square * n / np.maximum(n - 1, ROUNDING), pooled)
        thirds = np.where(several, third, float((overall * overall * overall).mean()))
        residual = float(second.mean())
        kurtosis = float((second * second).mean()) / residual**2 if residual > 0 else 3.0
        fourths = np.where(n < FEW, kurtosis * variances**2, fourth)
        heard = np.bincount(stratum, minlength=k)
        return cls(sizes, heard, n, means, variances, thirds, fourths, float(y.max()))

    def central(self, which: NDArray[np.bool_]) -> Moments:
        """The moments of some strata, as the intervals want them."""
        return self.means[which], self.variances[which], self.thirds[which], self.fourths[which]

    @property
    def share(self) -> NDArray[np.float64]:
        """The share that a stratum's answers stand for: ``N_h/N`` of its own, and of strata without an answer."""
        carried = np.bincount(carriers(self.heard), weights=self.sizes, minlength=len(self.sizes))
        return np.asarray(carried / self.sizes.sum())

    @property
    def variance(self) -> float:
        """``Σ (N_h/N)² (1 − n_h/N_h) s_h²/n_h`` over the strata that have an answer."""
        seen = self.heard > 0
        rest = np.maximum(0.0, 1 - self.heard[seen] / self.sizes[seen])
        return float((self.share[seen] ** 2 * rest * self.variances[seen] / self.counts[seen]).sum())

    @property
    def effective(self) -> NDArray[np.float64]:
        """``n_h (N_h − 1)/(N_h − a_h)`` with ``a_h`` answers: as many draws with replacement tell as much."""
        left = np.maximum(self.sizes - self.heard, 0)
        whole = (left == 0) & (self.heard > 0)
        return np.where(whole, 1e15, self.counts * np.maximum(self.sizes - 1, 1) / np.maximum(left, 1))


def stratum_cells(sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The stratum of each draw, and ``1 − n_h/N_h`` of its answers there."""
    stratum = np.asarray(sample.draw.columns["stratum"], dtype=np.int64)
    sizes = np.asarray(sample.draw.constants["stratum_size"])
    heard = np.bincount(stratum[sample.answered], minlength=len(sizes))
    return stratum, np.maximum(1 - heard / sizes, 0.0)[stratum]


def stratified_losses(moments: StratumMoments, level: float) -> Interval:
    """Hall's interval of the stratified mean; strata that were drawn whole add no width.

    Strata without any answer hold anything between 0 and the largest loss seen.
    """
    seen = moments.heard > 0
    left = np.clip(1 - moments.heard / moments.sizes, 0.0, 1.0)[seen]
    share = moments.sizes[seen] / moments.sizes[seen].sum()
    low, high, notes = sum_of(share, moments.counts[seen], moments.central(seen), left, level)
    if seen.all():
        return low, high, notes
    silent = float(moments.sizes[~seen].sum() / moments.sizes.sum())
    note = f"strata of {percent(silent)} of the inputs have no answer; {SILENT}"
    return (1 - silent) * low, (1 - silent) * high + silent * moments.largest, (*notes, note)
