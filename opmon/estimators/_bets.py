"""The terms that bets are made on, for draws one by one and for waves of fixed numbers per stratum.

:class:`opmon.decisions.draw_values.DrawValues` says why each design's are valid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opmon.bets import Terms
from opmon.response import shares, stands_for
from opmon.types import Floats, Sample

Counts = NDArray[np.int64]

WIDEST = 10.0
"""The largest weight of a draw that bets allow for: ``1 / defensive``."""


def answered_only(sample: Sample, losses: Floats) -> Floats:
    """The losses of the draws that have an answer; 0 elsewhere."""
    return np.where(sample.answered, np.nan_to_num(losses), 0.0)


def strata_of(sample: Sample) -> Counts:
    """The stratum of each draw, where the design has strata; else one for all."""
    return sample.draw.columns.get("stratum", np.zeros(len(sample.draw), dtype=np.int64))


def one_by_one(sample: Sample, factors: Floats, stratum: Counts, widest: float) -> Terms:
    """Draws one by one: each answer weighs ``ρ/π_h``. No factor exceeds ``widest`` with full response."""
    answers = sample.answered
    weight = stands_for(sample, stratum) * answers.mean()
    bound = np.full(len(weight), widest * float(weight.max(initial=0.0)))
    return Terms(factors * weight, np.zeros(len(weight)), answers.astype(np.float64), bound)


def in_waves(factors: Floats, known: Floats, stakes: Floats, wave: NDArray[np.generic]) -> Terms:
    """Draws of fixed numbers per stratum: the largest factor of a wave is known before its labels."""
    bound = np.ones(len(factors))
    for t in np.unique(wave):
        bound[wave == t] = max(float(factors[wave == t].max()), 1.0)
    return Terms(factors, known, stakes, bound)


def stratified(part: Sample, sizes: NDArray[np.generic], group: Counts | None = None) -> Floats:
    """``a N_h / (N a_h)`` for the answers of ``part``; 0 elsewhere."""
    heard = float(part.answered.sum())
    return heard * shares(part, part.draw.columns["stratum"], sizes, group) / part.draw.frame_size


def _only(sample: Sample, draws: NDArray[np.bool_]) -> Sample:
    """The sample without the answers of other draws."""
    return replace(sample, outcomes=np.where(draws, sample.outcomes, np.nan))


def common_strata(sample: Sample, y: Floats) -> Terms:
    """Waves over common strata, each from what the waves before have left of them; silent draws count as not drawn."""
    stratum, wave = sample.draw.columns["stratum"], sample.draw.columns["wave"]
    answers, left = sample.answered, sample.draw.constants["stratum_size"].astype(np.float64)
    factors, known = np.zeros(len(y)), np.zeros(len(y))
    for t in range(int(wave.max(initial=-1)) + 1):
        own = answers & (wave == t)
        factors += stratified(_only(sample, own), left)
        known[own] = y[wave < t].sum() / sample.draw.frame_size
        left = left - np.bincount(stratum[own], minlength=len(left))
    return in_waves(factors, known, answers.astype(np.float64), wave)


def own_strata(sample: Sample, y: Floats) -> Terms:
    """Waves with strata of their own; a stratum's size leaves out what was drawn before."""
    wave, constants = sample.draw.columns["wave"], sample.draw.constants
    strata_of, answers = constants["stratum_wave"], sample.answered
    drawn = stands_for(sample, sample.draw.columns["stratum"], strata_of) * y
    factors, known = np.zeros(len(y)), np.zeros(len(y))
    for t in range(int(wave.max(initial=-1)) + 1):
        own = answers & (wave == t)
        sizes = np.where(strata_of == t, constants["stratum_size"], 0)
        factors += stratified(_only(sample, own), sizes, strata_of)
        known[own] = drawn[wave < t].sum() / sample.draw.frame_size
    return in_waves(factors, known, _wave_stakes(wave, answers, constants["wave_share"]), wave)


def _wave_stakes(wave: Counts, answers: NDArray[np.bool_], shares_of_rest: Floats) -> Floats:
    """``c = w_t a / a_t``: a wave counts by the weight that was fixed for it before its labels were asked for.

    What waves without any answer would have counted for goes to the last one that has some.
    """
    heard = np.bincount(wave[answers], minlength=len(shares_of_rest))
    speaking = np.flatnonzero(heard)
    weights, rest = np.zeros(len(shares_of_rest)), 1.0
    for t in speaking[:-1]:
        weights[t] = rest * shares_of_rest[t]
        rest -= weights[t]
    weights[speaking[-1:]] = rest
    per_draw = np.divide(weights * answers.sum(), heard, out=np.zeros(len(heard)), where=heard > 0)
    return np.asarray(np.where(answers, per_draw[wave], 0.0))
