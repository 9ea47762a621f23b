"""The cells of an adaptive draw: one per wave and stratum, with what each adds to the estimate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from opmon.estimators._losses import Moments
from opmon.estimators._weighted_score import KNOWN
from opmon.response import likelihoods
from opmon.types import Draw, Floats, Sample
from opmon.types.draw import KIND

ENOUGH = 4
"""Answers that a cell wants before it stands alone: an interval that divides by ``n − 1`` is far too wide below.

3, 5 or 6 make intervals 1.035, 0.98 and 0.96 times as wide at a response of 0.5, errors the same within 1 %; larger
cells have more of the bias that comes where response changes steeply with the score.
"""


@dataclass(frozen=True, eq=False)
class Cells:
    """Strata that were answered whole or by ``ENOUGH``; others are joined with their neighbours in score of the wave.

    The mean loss is ``Σ_c (share_c ȳ_c + later_c ȳ'_c)``. ``share`` is ``a_t N_th/N``: what the cell stands for in its
    own wave; ``later`` is ``n_th/N`` times the weight of all later waves, in which its draws are known. Answers of
    joined strata weigh ``N_th/n_th`` in ``ȳ``, by the draws whose place they take, and alike in ``ȳ'``, which stands
    for the draws themselves; in both, times the draws that each stands for by its propensity, where there is one. With
    all answers there, a stratum is a cell and both are its mean.
    """

    cell: NDArray[np.int64]
    """The cell of every draw."""
    answers: NDArray[np.bool_]
    weight: Floats
    """The factor of every draw in ``ȳ``: ``N_th/n_th`` relative to the largest of the cell."""
    like: Floats
    """The factor of every draw in ``ȳ'``: how many draws like it an answer stands for, up to a factor."""
    heard: Floats
    drawn: Floats
    sizes: Floats
    share: Floats
    later: Floats
    wave: NDArray[np.int64]
    kind: NDArray[np.int64]
    """The kind of input that a cell of an aimed draw holds; 0 of other draws, −1 where kinds are not told apart."""

    @classmethod
    def of(cls, sample: Sample) -> Cells:
        """Those of a sample, found once for all values of it: slices and ratios ask for many variances."""
        return _cells(_Pattern(sample))

    @classmethod
    def found(cls, sample: Sample) -> Cells:
        """Those of a sample, from its draw and which of its draws have an answer."""
        draw, answers = sample.draw, sample.answered
        stratum, sizes = draw.columns["stratum"], np.asarray(draw.constants["stratum_size"])
        wave = np.asarray(draw.constants["stratum_wave"])
        stratum_drawn = np.bincount(stratum, minlength=len(sizes))
        stratum_heard = np.bincount(stratum[answers], minlength=len(sizes))
        kind, apart = _kinds(draw, stratum_heard, wave)
        merged = _joined(stratum_heard, stratum_drawn, apart)
        cell, heard_waves = merged[stratum], np.unique(wave[np.unique(stratum[answers])])
        many = int(merged.max()) + 1
        drawn = np.bincount(cell[cell >= 0], minlength=many)
        heard = np.bincount(cell[answers], minlength=many).astype(np.float64)
        size = np.bincount(merged[merged >= 0], sizes[merged >= 0], minlength=many).astype(np.float64)
        of = np.zeros(many, dtype=np.int64)
        of[merged[merged >= 0]] = wave[merged >= 0]
        own_kind = np.zeros(many, dtype=np.int64)
        own_kind[merged[merged >= 0]] = kind[merged >= 0]
        a = _weights(np.asarray(draw.constants["wave_share"]), heard_waves)
        share, later = np.zeros(many), np.zeros(many)
        for t in heard_waves:
            own, before = of == t, of < t
            counted = float(size[own].sum() + drawn[before].sum())  # N, unless a wave before has no answer at all
            share[own] = a[t] * size[own] / counted
            later[before] += a[t] * drawn[before] / counted
        cell = np.where(cell >= 0, cell, 0)
        stands = (sizes / np.maximum(stratum_drawn, 1))[stratum]
        most = np.zeros(many)
        np.maximum.at(most, cell, stands)
        like = likelihoods(sample)
        weight = stands / most[cell] * like
        return cls(cell, answers, weight, like, heard, drawn.astype(np.float64), size, share, later, of, own_kind)

    @property
    def coefficients(self) -> Floats:
        """``a_k`` of every draw, 0 without an answer."""
        own = self.weight / self._sum(self.weight)[self.cell]
        known = self.like / self._sum(self.like)[self.cell]
        total = self.share[self.cell] * own + self.later[self.cell] * known
        return np.asarray(np.where(self.answers, total, 0.0))

    @property
    def count(self) -> Floats:
        """The answers of a cell, ``(Σw)²/Σw²`` where their weights differ."""
        return self._sum(self.weight) ** 2 / self._sum(self.weight**2)

    @property
    def left(self) -> Floats:
        """``1 − n_c/N_c`` of the answers, 0 where the cell was drawn whole and answered."""
        return np.asarray(np.maximum(1 - self.heard / self.sizes, 0.0))

    @property
    def uncertain(self) -> Floats:
        """``A_c``: the estimate varies as ``Σ A_c ȳ_c`` with factors ``left`` would.

        ``Var(share (ȳ_r − Ȳ_N) + later (ȳ_r − Ȳ_n)) = [share² (1 − r/N) + (2 share later + later²)(1 − r/n)] S²/r`` for
        ``r`` answers of ``n`` draws of ``N`` inputs: later waves know the draws, but not those without an answer.
        """
        silent = 1 - self.heard / self.drawn
        ratio = np.divide(silent, self.left, out=np.zeros_like(silent), where=self.left > 0)
        return np.asarray(np.sqrt(self.share**2 + (2 * self.share * self.later + self.later**2) * ratio))

    @property
    def place(self) -> Floats:
        """The rank of each cell in the score of its wave, from 0 to 1."""
        before, total = np.zeros(len(self.sizes)), np.zeros(len(self.sizes))
        for t in np.unique(self.wave):
            own = self.wave == t
            before[own] = np.cumsum(self.sizes[own]) - self.sizes[own] / 2
            total[own] = self.sizes[own].sum()
        return before / total

    @property
    def effective(self) -> Floats:
        """The independent draws that tell as much of the cell."""
        return np.asarray(np.where(self.left > 0, self.count / np.maximum(self.left, 1e-12), 2 * KNOWN))

    def _sum(self, values: Floats) -> Floats:
        sums = np.bincount(self.cell[self.answers], weights=values[self.answers], minlength=len(self.heard))
        return np.asarray(sums, dtype=np.float64)

    def moments(self, values: Floats) -> Moments:
        """Mean, variance, third and fourth central moment per cell; a single answer takes the variance of all.

        The third is corrected for the size of the cell, ``n²/((n − 1)(n − 2))``, twofold for five answers; so few say
        nothing about the fourth, which takes the kurtosis of all cells together.
        """
        y, n, total = values[self.answers], self.count, self._sum(self.weight)
        mean = self._sum(self.weight * values) / total
        deviation = values - mean[self.cell]
        square = deviation * deviation
        powers = (square, square * deviation, square * square)
        second, third, fourth = (self._sum(self.weight * power) / total for power in powers)
        variance = second * n / np.maximum(n - 1, 1)
        variance = np.where(n > 1, variance, y.var(ddof=1) if len(y) > 1 else 0.0)
        third = third * np.where(n > 2, n**2 / np.maximum((n - 1) * (n - 2), 1), 0.0)
        kurtosis = float(n @ fourth) / max(float(n @ second**2), 1e-300)
        return mean, variance, third, kurtosis * variance**2


class _Pattern:
    """What the cells of a sample follow from: two samples alike in it have the same."""

    def __init__(self, sample: Sample) -> None:
        draw, propensity = sample.draw, sample.propensity
        constants = (draw.constants[name] for name in ("stratum_size", "stratum_wave", "wave_share"))
        arrays = (draw.columns["stratum"], *constants, draw.constants.get(KIND, ()), sample.answered)
        likely = None if propensity is None else propensity.tobytes()
        self.sample, self.key = sample, (*(np.asarray(array).tobytes() for array in arrays), likely)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Pattern) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=8)
def _cells(pattern: _Pattern) -> Cells:
    return Cells.found(pattern.sample)


def _kinds(
    draw: Draw, heard: NDArray[np.int64], wave: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The kind of every stratum, and what must not be joined: waves, and kinds of them where each has an answer."""
    if KIND not in draw.constants:
        return np.zeros(len(heard), dtype=np.int64), wave
    kind = np.asarray(draw.constants[KIND])
    apart = wave * (int(kind.max()) + 1) + kind
    there = np.unique(apart)
    answered = np.bincount(apart, heard, minlength=int(there[-1]) + 1)[there] > 0
    heard_waves = np.isin(there // (int(kind.max()) + 1), np.unique(wave[heard > 0]))
    if (answered | ~heard_waves).all():
        return kind, apart
    return np.full(len(heard), -1, dtype=np.int64), wave


def _joined(heard: NDArray[np.int64], drawn: NDArray[np.int64], wave: NDArray[np.int64]) -> NDArray[np.int64]:
    """A cell for every stratum: those with ``ENOUGH`` answers or all of theirs stand alone, others join the next.

    What is left at the end of a wave joins the cell before. −1 for the strata of a wave without any answer.
    """
    cell = np.full(len(heard), -1, dtype=np.int64)
    count = 0
    for t in np.unique(wave):
        inside, first = np.flatnonzero(wave == t), count
        if not heard[inside].any():
            continue
        gathered, missing = 0, 0
        for h in inside:
            cell[h] = count
            gathered, missing = gathered + int(heard[h]), missing + int(drawn[h] - heard[h])
            if gathered >= ENOUGH or (gathered and not missing):
                count, gathered, missing = count + 1, 0, 0
        if gathered or missing:
            if count > first:
                cell[cell == count] = count - 1
            else:
                count += 1
    return cell


def _weights(shares: Floats, waves: NDArray[np.int64]) -> Floats:
    """``a_t`` from the shares of what the waves before have left; the last wave with answers takes all that is left."""
    weights, left = np.zeros(len(shares)), 1.0
    for t in waves[:-1]:
        weights[t] = left * shares[t]
        left -= weights[t]
    weights[waves[-1]] = left
    return weights
