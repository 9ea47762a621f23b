"""The cells of an adaptive draw: one per wave and stratum, with what each adds to the estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.estimators.intervals_core import KNOWN
from opmon.estimators.losses_core import Moments
from opmon.types import Sample

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """Strata with at least one answer; one without any is joined with the next of its wave.

    The mean loss is ``Σ_c (share_c + later_c) ȳ_c``. ``share`` is ``a_t N_th/N``: what the stratum stands for in its
    own wave; ``later`` is ``n_th/N`` times the weight of all later waves, in which its draws are known.
    """

    cell: NDArray[np.int64]
    """The cell of every draw."""
    answers: NDArray[np.bool_]
    heard: Floats
    sizes: Floats
    share: Floats
    later: Floats

    @classmethod
    def of(cls, sample: Sample) -> Cells:
        draw, answers = sample.draw, sample.answered
        stratum, sizes = draw.columns["stratum"], np.asarray(draw.constants["stratum_size"])
        wave = np.asarray(draw.constants["stratum_wave"])
        merged = _joined(np.bincount(stratum[answers], minlength=len(sizes)), wave)
        cell, heard_waves = merged[stratum], np.unique(wave[np.unique(stratum[answers])])
        many = int(merged.max()) + 1
        drawn = np.bincount(cell[cell >= 0], minlength=many)
        heard = np.bincount(cell[answers], minlength=many).astype(np.float64)
        size = np.bincount(merged[merged >= 0], sizes[merged >= 0], minlength=many).astype(np.float64)
        of = np.zeros(many, dtype=np.int64)
        of[merged[merged >= 0]] = wave[merged >= 0]
        a = _weights(np.asarray(draw.constants["wave_share"]), heard_waves)
        share, later = np.zeros(many), np.zeros(many)
        for t in heard_waves:
            own, before = of == t, of < t
            counted = float(size[own].sum() + drawn[before].sum())  # N, unless a wave before has no answer at all
            share[own] = a[t] * size[own] / counted
            later[before] += a[t] * drawn[before] / counted
        return cls(np.where(cell >= 0, cell, 0), answers, heard, size, share, later)

    @property
    def left(self) -> Floats:
        """``1 − n_c/N_c``, 0 where the stratum was drawn whole."""
        return np.asarray(np.maximum(1 - self.heard / self.sizes, 0.0))

    @property
    def effective(self) -> Floats:
        """The independent draws that tell as much of the stratum."""
        return np.asarray(np.where(self.left > 0, self.heard / np.maximum(self.left, 1e-12), 2 * KNOWN))

    def known(self, means: Floats) -> float:
        """The part of the mean loss that later waves need not estimate."""
        return float(self.later @ means)

    def moments(self, values: Floats) -> Moments:
        """Mean, variance, third and fourth central moment per cell; a single answer takes the variance of all.

        The third is corrected for the size of the cell, ``n²/((n − 1)(n − 2))``, twofold for five answers; so few say
        nothing about the fourth, which takes the kurtosis of all cells together.
        """
        y, cell, n = values[self.answers], self.cell[self.answers], self.heard
        mean = np.bincount(cell, y, len(n)) / n
        deviation = y - mean[cell]
        second, third, fourth = (np.bincount(cell, deviation**k, len(n)) / n for k in (2, 3, 4))
        variance = second * n / np.maximum(n - 1, 1)
        variance = np.where(n > 1, variance, y.var(ddof=1) if len(y) > 1 else 0.0)
        third = third * np.where(n > 2, n**2 / np.maximum((n - 1) * (n - 2), 1), 0.0)
        kurtosis = float(n @ fourth) / max(float(n @ second**2), 1e-300)
        return mean, variance, third, kurtosis * variance**2


def _joined(heard: NDArray[np.int64], wave: NDArray[np.int64]) -> NDArray[np.int64]:
    """A cell for every stratum: its own if it has answers, else that of the nearest one after or before in its wave.

    −1 for the strata of a wave without any answer.
    """
    cell = np.full(len(heard), -1, dtype=np.int64)
    count = 0
    for t in np.unique(wave):
        inside = np.flatnonzero(wave == t)
        some = inside[heard[inside] > 0]
        if len(some):
            after = np.minimum(np.searchsorted(some, inside), len(some) - 1)
            cell[inside] = count + after
            count += len(some)
    return cell


def _weights(shares: Floats, waves: NDArray[np.int64]) -> Floats:
    """``a_t`` from the shares of what the waves before have left; the last wave with answers takes all that is left."""
    weights, left = np.zeros(len(shares)), 1.0
    for t in waves[:-1]:
        weights[t] = left * shares[t]
        left -= weights[t]
    weights[waves[-1]] = left
    return weights
