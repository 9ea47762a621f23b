"""The stratified mean over waves: for GBS."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.estimators._answers import answered, column, constant, estimate_of, in_usual_units, require_design, unit_free
from opmon.estimators._bets import answered_only, common_strata
from opmon.estimators._losses import Interval, sum_of
from opmon.estimators._skewed_score import cautious, skewed_score_bounds
from opmon.estimators._stratified import SILENT, StratumMoments, stratum_cells
from opmon.estimators._weighted_score import KNOWN
from opmon.estimators.tally import Tally
from opmon.problems import is_binary
from opmon.response import carriers, likelihoods
from opmon.types import Estimate, Sample
from opmon.wording import percent


@dataclass(frozen=True)
class GradientBasedEstimator(Estimator):
    """Accuracy ``1 − Σ_h (N_h/N) Σ_w a_hw θ̂_hw``, one estimate per stratum ``h`` and wave ``w``; unbiased.

    ``θ̂_hw = (Σ_{heard before w} y + (N_h − heard) ȳ_hw)/N_h``: given the waves before, the draws of a wave in a
    stratum are a simple random sample of what is left of it. ``a_hw`` is the share ``n_w / Σ_{v≥w} n_v`` of the weight
    that the waves before have left, and all of it in the last wave that reaches the stratum: the one that exhausts it,
    or the last of the draw. Both are known before the labels of the wave are, which is what keeps the sum unbiased.
    The plain stratified mean would be biased, because GBS stops looking where it saw no failure; so would shares in
    proportion to the waves that a stratum turns out to have, and the known mean of a stratum once it is drawn whole,
    because a stratum is drawn whole where failures were seen.

    Variance ``Σ_h (N_h/N)² s_h² / m_h`` with ``1/m_h = Σ_w a_hw² (1 − f)/n_hw`` and ``s_h²`` from all waves. The
    interval of a share is the score interval with ``m_h`` effective draws in each stratum, that of squared errors is
    Hall's. Both are made for 96.5 % where 95 % is asked: the allocation follows the labels, and at 95 % the coverage is
    as low as 92 % on some populations.

    Draws without an answer count as not drawn: right while answers are missing at random inside a stratum, or weighed
    by a propensity. A stratum without any answer is carried by its neighbour.
    """

    bets: ClassVar[bool] = True
    assisted: ClassVar[bool] = True

    @unit_free
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        a = self.coefficients(sample)
        answers = sample.answered
        y, stratum = sample.outcomes[answers], column(sample.draw, "stratum")[answers]
        cells = _Cells.of(sample)
        share = cells.sizes / cells.sizes.sum()
        moments = StratumMoments.of(sample, sample.outcomes, cells.sizes)
        spoken = np.where(cells.share_heard > 0, cells.share_heard, 1.0)
        rates = np.bincount(stratum, weights=a[answers] * y, minlength=len(share)) / spoken
        error = math.sqrt(self.variance(sample, sample.outcomes)) if len(y) > 1 else None
        notes: tuple[str, ...] = ()
        if is_binary(y, sample.problem):
            m = cells.effective
            low, high = skewed_score_bounds(share, m, m * np.clip(rates, 0, 1), level, cautious(level))
            name = "stratified score"
        else:
            low, high, notes = _losses(cells, moments, rates, level)
            name = "hall"
        loss = float(a[answers] @ y)
        return estimate_of(
            sample, loss, low, high, method=f"gbs/{name}", level=level, standard_error=error, notes=notes
        )

    @in_usual_units
    def tally(self, sample: Sample) -> Tally:
        """The tally of the draws, for an interval over several rounds."""
        a, cells, answers = self.coefficients(sample), _Cells.of(sample), sample.answered
        W, m = cells.share_heard, cells.effective
        failed = np.bincount(
            column(sample.draw, "stratum")[answers], weights=(a * sample.outcomes)[answers], minlength=len(W)
        )
        rates = np.divide(failed, W, out=np.zeros_like(W), where=W > 0)
        draws = np.minimum(m, 2 * KNOWN)
        if is_binary(sample.outcomes[answers], sample.problem):
            return Tally.of_shares(cells.sizes / cells.sizes.sum(), draws, np.clip(rates, 0, 1))
        seen = m > 0
        _, variance, third, fourth = StratumMoments.of(sample, sample.outcomes, cells.sizes).central(seen)
        left = np.where(m >= KNOWN, 0.0, 1.0)[seen]
        return Tally.of(W[seen], draws[seen], left, (rates[seen], variance, third, fourth))

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``a_k`` of the mean loss ``Σ a_k y_k``; 0 for a draw without an answer."""
        cells = _Cells.of(sample)
        stratum, wave = column(sample.draw, "stratum"), column(sample.draw, "wave")
        left = np.maximum(cells.sizes[:, None] - (np.cumsum(cells.heard, axis=1) - cells.heard), 0)
        later = np.cumsum(cells.weight[:, ::-1], axis=1)[:, ::-1] - cells.weight
        own = cells.weight * left / (cells.sizes[:, None] * np.maximum(cells.heard, 1))
        weight = likelihoods(sample)
        mean = cells.total / np.maximum(cells.heard, 1)
        relative = weight / np.where(mean > 0, mean, 1.0)[stratum, wave]
        each = own[stratum, wave] * relative + (later / cells.sizes[:, None])[stratum, wave]
        return np.asarray(np.where(sample.answered, each * cells.share_heard[stratum], 0.0))

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ a_k values_k``."""
        cells = _Cells.of(sample)
        moments = StratumMoments.of(sample, values, cells.sizes)
        seen = cells.effective > 0
        return float((cells.share_heard[seen] ** 2 * moments.variances[seen] / cells.effective[seen]).sum())

    def cells(self, sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return stratum_cells(sample)

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms:
        """Each draw as an estimate of the mean of ``losses`` on its own."""
        return common_strata(sample, answered_only(sample, losses))


def _losses(cells: _Cells, moments: StratumMoments, rates: NDArray[np.float64], level: float) -> Interval:
    """Hall's interval; strata without any answer hold anything between 0 and the largest loss seen."""
    m, W = cells.effective, cells.share_heard
    seen = (m > 0) & (m < KNOWN)
    drawn: Interval = (0.0, 0.0, ())
    if seen.any():
        _, variances, thirds, fourths = moments.central(seen)
        inside = (rates[seen], variances, thirds, fourths)
        drawn = sum_of(W[seen], m[seen], inside, np.ones(int(seen.sum())), cautious(level))
    low, high, notes = drawn
    known, silent = float(W[~seen] @ rates[~seen]), float(cells.sizes[m == 0].sum() / cells.sizes.sum())
    if silent:
        notes = (*notes, f"strata of {percent(silent)} of the inputs have no answer; {SILENT}")
    return (1 - silent) * (low + known), (1 - silent) * (high + known) + silent * moments.largest, notes


@dataclass(frozen=True, eq=False)
class _Cells:
    """Per stratum (row) and wave (column) the answers ``heard`` and the ``weight`` ``a_hw`` of the wave.

    ``total`` and ``squares`` are sums over the answers of the draws like them (:func:`opmon.response.likelihoods`).
    """

    sizes: NDArray[np.int64]
    heard: NDArray[np.int64]
    weight: NDArray[np.float64]
    total: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, sample: Sample) -> _Cells:
        require_design(sample, "gbs")
        answers = answered(sample)
        stratum, wave = column(sample.draw, "stratum"), column(sample.draw, "wave")
        sizes = np.asarray(constant(sample.draw, "stratum_size"))
        shape = (len(sizes), int(wave.max()) + 1)
        heard, total, squares = np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape)
        cell, like = (stratum[answers], wave[answers]), likelihoods(sample)[answers]
        np.add.at(heard, cell, 1)
        np.add.at(total, cell, like)
        np.add.at(squares, cell, like**2)
        return cls(sizes, heard, _weights(heard, np.bincount(wave).astype(np.float64)), total, squares)

    @property
    def share_heard(self) -> NDArray[np.float64]:
        """``N_h/N`` and that of strata without any answer that it carries; 0 for these."""
        carrier = carriers(self.heard.sum(axis=1))
        carried = np.bincount(carrier, weights=self.sizes, minlength=len(self.sizes))
        return np.asarray(carried / self.sizes.sum())

    @property
    def effective(self) -> NDArray[np.float64]:
        """``m_h``: how many independent draws tell as much of a stratum; infinite if one wave drew it whole."""
        before = np.cumsum(self.heard, axis=1) - self.heard
        left = self.sizes[:, None] - before
        rest = (
            np.where(left > 1, (left - self.heard) / np.maximum(left - 1, 1), 0.0) * (left / self.sizes[:, None]) ** 2
        )
        draws = np.divide(self.total**2, self.squares, out=np.ones_like(self.total), where=self.squares > 0)
        inverse = (self.weight**2 * np.maximum(rest, 0) / draws).sum(axis=1)
        return np.where(self.heard.sum(axis=1) > 0, 1 / np.maximum(inverse, 1e-12), 0.0)


def _weights(heard: NDArray[np.int64], wave_sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """``a_hw``: the wave's share of all draws still to come, and all that is left in the last wave with an answer."""
    to_come = np.cumsum(wave_sizes[::-1])[::-1]
    answers_after = np.cumsum(heard[:, ::-1], axis=1)[:, ::-1] - heard
    share = np.where(heard > 0, np.where(answers_after > 0, wave_sizes / to_come, 1.0), 0.0)
    left = np.cumprod(np.column_stack((np.ones(len(heard)), 1 - share[:, :-1])), axis=1)
    return np.asarray(left * share)
