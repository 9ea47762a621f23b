"""From the draws of any design to values that each estimate the mean loss on their own: what bets are made on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.response import shares, stands_for
from opmon.types import Sample

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

WIDEST = 10.0
"""The largest weight of a draw that bets allow for: ``1 / defensive``."""
WIDEST_OF_RHC = 20.0
"""RHC multiplies it by how far the sum of a random group is from the mean."""

DESIGNS = ("adaptive", "ces", "css", "deepest", "gbs", "rhc", "srs", "ssrs", "sups", "two_stage")
"""The designs whose draws are known to estimate the mean loss one by one; with another no rule can bet."""


@dataclass(frozen=True, eq=False)
class DrawValues:
    r"""``values`` :math:`v_j \ge 0` and ``stakes`` :math:`c_j`, one per answered draw.

    For every bet :math:`\lambda \ge 0` with :math:`\lambda c_j m < 1`, fixed before the labels of the round are seen,

    .. math:: E\Big[\prod_j \big(1 + \lambda c_j (v_j - m)\big)\Big] \le 1 \quad\text{if the mean loss } \theta \le m .

    Why, by design (``y`` is the loss of draw ``j``):

    - ``sups``: :math:`v = y/(N p)`. Independent, each of mean :math:`\theta`.
    - ``deepest``: :math:`v = (\sum_{i<j} y_i + y/q_j)/N`: of mean :math:`\theta` given all draws before.
    - ``srs``, without replacement: :math:`v = y`; ``rhc``: :math:`v = y q/(p N_r)`, of mean :math:`\theta` each and
      negatively associated (Joag-Dev and Proschan, Ann. Statist. 11, 1983, theorem 2.11), so the mean of a product of
      increasing functions is at most the product of the means.
    - ``two_stage``: :math:`v = y N_h/(N \psi_h)`: strata are independent, inputs in one negatively associated.
    - ``ssrs``, ``css``: :math:`v = y\,a N_h/(N a_h)` with the answered counts ``a``. Answers of a stratum have the mean
      :math:`\mu_h = a N_h\theta_h/(N a_h)`, and :math:`\prod_h (1 + \lambda(\mu_h - m))^{a_h} \le
      (1 + \lambda(\theta - m))^a` by the inequality of the means, because :math:`\sum_h (a_h/a) \mu_h = \theta`.
    - ``gbs``, ``adaptive``: the same wave by wave, given the waves before, whose losses are added:
      :math:`v = \sum_\text{before} y/N + y\,a_t N_{th}/(N a_{th})`; ``adaptive`` weighs waves by stakes.
    - ``ces`` chooses groups by likeness: its draws count as if they were simple random ones, which is not exact.

    **Draws without an answer** are left out, and the others weigh by the pattern of response, which is known before
    the labels are looked at. In strata that are drawn in fixed numbers the *answered* counts take the place of the
    drawn ones, and all of the above holds given the pattern. Elsewhere the value of an answer in a class of which the
    share :math:`\pi_h` was answered, :math:`\rho` of all draws, is multiplied by :math:`\rho/\pi_h`; then the factor of
    a draw, 1 where it has no answer, has the mean :math:`1 + \lambda\rho(\theta - m)`, exactly for known
    :math:`\pi_h`. Where the sample has a propensity, answers inside a stratum weigh by its inverse. Assumed is that
    answering has nothing to do with being wrong beyond what stratum and propensity tell.
    """

    values: Floats
    stakes: Floats
    highest: Floats | None = None
    r"""The most that each value could have been, known before the labels of its wave; None where losses have no bound.

    With it the same holds of bets on values *below* a line: :math:`E[\prod_j (1 + \lambda c_j (m - v_j))] \le 1` if
    :math:`\theta \ge m`, for :math:`\lambda c_j (v^{max}_j - m) < 1`: products of decreasing functions obey the same
    inequalities.
    """

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Terms:
    """``f_j``, ``k_j`` and ``c_j`` of ``v_j = k_j + f_j y_j``, one per draw; ``k`` comes from the draws before ``j``.

    All are 0 for a draw without an answer.
    """

    factors: Floats
    known: Floats
    stakes: Floats
    bound: Floats
    """What ``f_j`` cannot exceed, known before the labels of the wave: what limits bets on values below 0."""

    @property
    def reach(self) -> Floats:
        """How far below 0 the value of a loss of −1 can lie: known losses add 1 at most."""
        return np.asarray(self.bound + (1.0 if self.known.any() else 0.0))

    @property
    def excess(self) -> float:
        """The largest factor where one is beyond its bound, which no bet allows for; else 0."""
        beyond = self.factors > self.bound * (1 + 1e-9)
        return float(self.factors[beyond].max()) if beyond.any() else 0.0

    def highest(self, loss: float) -> Floats:
        """The most that a value could be where no loss exceeds ``loss``; no bound where a factor is beyond its own."""
        return np.asarray(self.known + self.bound * loss if not self.excess else np.full(len(self.known), np.inf))

    def of(self, losses: Floats) -> Floats:
        """``v_j``; a draw without an answer has the value 0."""
        return np.asarray(self.known + self.factors * np.nan_to_num(losses))


def draw_values(sample: Sample) -> DrawValues:
    """The values of the answered draws; a design that is not one of :data:`DESIGNS` is refused.

    >>> from opmon.types import Draw
    >>> draw = Draw("sups", 100, np.array([3, 5]), columns={"probability": np.array([0.02, 0.01])})
    >>> draw_values(Sample(draw, np.array([1.0, 0.0]))).values
    array([0.5, 0. ])
    """
    found, answered = terms(sample, sample.outcomes), sample.answered
    highest = found.highest(1.0)[answered] if bounded(sample) else None
    return DrawValues(found.of(sample.outcomes)[answered], found.stakes[answered], highest)


def bounded(sample: Sample) -> bool:
    """Whether no loss can exceed 1: a squared error can."""
    return sample.problem != "regression" and not (sample.outcomes > 1).any()


def terms(sample: Sample, losses: Floats) -> Terms:
    """The terms of ``losses`` under the design of ``sample``, given which of its draws have an answer."""
    draw, y = sample.draw, np.where(sample.answered, np.nan_to_num(losses), 0.0)
    n, N, columns, constants = len(draw), draw.frame_size, draw.columns, draw.constants
    stratum = columns.get("stratum", np.zeros(n, dtype=np.int64))
    even = sample.answered.astype(np.float64)
    match draw.design:
        case "srs" | "ces":
            return _weighted(sample, even, np.zeros(n, dtype=np.int64), 1.0)
        case "sups":
            return _weighted(sample, 1 / (N * columns["probability"]), stratum, WIDEST)
        case "rhc":
            ratio = columns["group_probability"] / (columns["probability"] * columns["group_size"])
            return _weighted(sample, ratio, stratum, WIDEST_OF_RHC)
        case "two_stage":
            weight = constants["stratum_size"] / (N * constants["stratum_probability"])
            return _weighted(sample, weight[stratum], stratum, float(weight.max()))
        case "ssrs" | "css":
            return _in_waves(_stratified(sample, constants["stratum_size"]), np.zeros(n), even, np.zeros(n))
        case "deepest":
            found = _weighted(sample, 1 / (N * columns["probability"]), stratum, WIDEST)
            counted = stands_for(sample, stratum) * y
            return replace(found, known=(np.cumsum(counted) - counted) / N * even)
        case "gbs":
            return _waves(sample, y)
        case "adaptive":
            return _own_strata(sample, y)
    raise InputError(
        f"no rule can bet on draws of the design {draw.design!r}: that each of them estimates the mean loss is known "
        f"of {', '.join(DESIGNS)}. Use one of these samplers, or accuracy_below, which looks at estimates alone."
    )


def _weighted(sample: Sample, factors: Floats, stratum: Counts, widest: float) -> Terms:
    """Draws one by one: each answer weighs ``ρ/π_h``. No factor exceeds ``widest`` with full response."""
    answers = sample.answered
    weight = stands_for(sample, stratum) * answers.mean()
    bound = np.full(len(weight), widest * float(weight.max(initial=0.0)))
    return Terms(factors * weight, np.zeros(len(weight)), answers.astype(np.float64), bound)


def _in_waves(factors: Floats, known: Floats, stakes: Floats, wave: NDArray[np.generic]) -> Terms:
    """Draws of fixed numbers per stratum: the largest factor of a wave is known before its labels."""
    bound = np.ones(len(factors))
    for t in np.unique(wave):
        bound[wave == t] = max(float(factors[wave == t].max()), 1.0)
    return Terms(factors, known, stakes, bound)


def _stratified(part: Sample, sizes: NDArray[np.generic], group: Counts | None = None) -> Floats:
    """``a N_h / (N a_h)`` for the answers of ``part``; 0 elsewhere."""
    heard = float(part.answered.sum())
    return heard * shares(part, part.draw.columns["stratum"], sizes, group) / part.draw.frame_size


def _only(sample: Sample, draws: NDArray[np.bool_]) -> Sample:
    """The sample without the answers of other draws."""
    return replace(sample, outcomes=np.where(draws, sample.outcomes, np.nan))


def _waves(sample: Sample, y: Floats) -> Terms:
    """Waves over common strata, each from what the waves before have left of them; silent draws count as not drawn."""
    stratum, wave = sample.draw.columns["stratum"], sample.draw.columns["wave"]
    answers, left = sample.answered, sample.draw.constants["stratum_size"].astype(np.float64)
    factors, known = np.zeros(len(y)), np.zeros(len(y))
    for t in range(int(wave.max(initial=-1)) + 1):
        own = answers & (wave == t)
        factors += _stratified(_only(sample, own), left)
        known[own] = y[wave < t].sum() / sample.draw.frame_size
        left = left - np.bincount(stratum[own], minlength=len(left))
    return _in_waves(factors, known, answers.astype(np.float64), wave)


def _own_strata(sample: Sample, y: Floats) -> Terms:
    """Waves with strata of their own; a stratum's size leaves out what was drawn before."""
    wave, constants = sample.draw.columns["wave"], sample.draw.constants
    strata_of, answers = constants["stratum_wave"], sample.answered
    drawn = stands_for(sample, sample.draw.columns["stratum"], strata_of) * y
    factors, known = np.zeros(len(y)), np.zeros(len(y))
    for t in range(int(wave.max(initial=-1)) + 1):
        own = answers & (wave == t)
        sizes = np.where(strata_of == t, constants["stratum_size"], 0)
        factors += _stratified(_only(sample, own), sizes, strata_of)
        known[own] = drawn[wave < t].sum() / sample.draw.frame_size
    return _in_waves(factors, known, _wave_stakes(wave, answers, constants["wave_share"]), wave)


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
