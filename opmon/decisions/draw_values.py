"""From the draws of any design to values that each estimate the mean loss on their own: what bets are made on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.types import Draw, Sample

Floats = NDArray[np.float64]


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
    - ``ssrs``, ``css``: :math:`v = y\,n N_h/(N n_h)`. Draws of a stratum have the mean
      :math:`\mu_h = n N_h\theta_h/(N n_h)`, and :math:`\prod_h (1 + \lambda(\mu_h - m))^{n_h} \le
      (1 + \lambda(\theta - m))^n` by the inequality of the means, because :math:`\sum_h (n_h/n) \mu_h = \theta`.
    - ``gbs``, ``adaptive``: the same wave by wave, given the waves before, whose known losses are added:
      :math:`v = \sum_\text{before} y/N + y\,n_t N_{th}/(N n_{th})`; ``adaptive`` weighs waves by stakes.
    - ``ces`` chooses groups by likeness: its draws count as if they were simple random ones, which is not exact.

    Draws without an answer are left out: right while answering has nothing to do with being wrong.
    """

    values: Floats
    stakes: Floats

    def __len__(self) -> int:
        return len(self.values)


def draw_values(sample: Sample, coefficients: Floats | None = None) -> DrawValues:
    """The values of the answered draws; ``coefficients`` of the estimator are for designs that are not built in.

    >>> draw = Draw("sups", 100, np.array([3, 5]), columns={"probability": np.array([0.02, 0.01])})
    >>> draw_values(Sample(draw, np.array([1.0, 0.0]))).values
    array([0.5, 0. ])
    """
    factors, known, stakes = terms(sample.draw, np.nan_to_num(sample.outcomes), coefficients)
    answered = sample.answered
    values = known + factors * np.nan_to_num(sample.outcomes)
    return DrawValues(values[answered], stakes[answered])


def terms(draw: Draw, outcomes: Floats, coefficients: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """``f_j``, ``k_j`` and ``c_j`` of ``v_j = k_j + f_j y_j``: one of each per draw; ``k`` from draws before ``j``."""
    n, N, columns, constants = len(draw), draw.frame_size, draw.columns, draw.constants
    none, even = np.zeros(n), np.ones(n)
    match draw.design:
        case "srs" | "ces":
            return even, none, even
        case "sups":
            return 1 / (N * columns["probability"]), none, even
        case "rhc":
            return columns["group_probability"] / (columns["probability"] * columns["group_size"]), none, even
        case "two_stage":
            weight = constants["stratum_size"] / (N * constants["stratum_probability"])
            return weight[columns["stratum"]], none, even
        case "ssrs" | "css":
            return _stratified(columns["stratum"], constants["stratum_size"], N), none, even
        case "deepest":
            return 1 / (N * columns["probability"]), (np.cumsum(outcomes) - outcomes) / N, even
        case "gbs":
            return _waves(columns["stratum"], columns["wave"], constants["stratum_size"], outcomes, N, even)
        case "adaptive":
            stakes = _wave_stakes(columns["wave"], constants["wave_share"])
            return _own_strata(columns["stratum"], columns["wave"], constants["stratum_size"], outcomes, N, stakes)
    if coefficients is not None:
        return n * coefficients, none, even
    return even, none, even


def _stratified(stratum: NDArray[np.int64], sizes: NDArray[Any], N: int) -> Floats:
    """``n N_h / (N n_h)``, with the strata that were drawn standing for all."""
    drawn = np.bincount(stratum, minlength=len(sizes))
    weight = np.divide(len(stratum) * sizes, N * drawn, out=np.zeros(len(sizes)), where=drawn > 0)
    return np.asarray(weight[stratum], dtype=np.float64)


def _waves(
    stratum: NDArray[np.int64], wave: NDArray[np.int64], sizes: NDArray[np.int64], y: Floats, N: int, stakes: Floats
) -> tuple[Floats, Floats, Floats]:
    """Waves over common strata, each from what the waves before have left of them."""
    factors, known, left = np.empty(len(y)), np.empty(len(y)), sizes.astype(np.float64)
    for t in range(int(wave.max(initial=-1)) + 1):
        own = wave == t
        factors[own] = _stratified(stratum[own], left, N)
        known[own] = y[wave < t].sum() / N
        left = left - np.bincount(stratum[own], minlength=len(sizes))
    return factors, known, stakes


def _own_strata(
    stratum: NDArray[np.int64], wave: NDArray[np.int64], sizes: NDArray[np.int64], y: Floats, N: int, stakes: Floats
) -> tuple[Floats, Floats, Floats]:
    """Waves with strata of their own; a stratum's size leaves out what was drawn before."""
    factors, known = np.empty(len(y)), np.empty(len(y))
    for t in range(int(wave.max(initial=-1)) + 1):
        own = wave == t
        factors[own] = _stratified(stratum[own], sizes, N)
        known[own] = y[wave < t].sum() / N
    return factors, known, stakes


def _wave_stakes(wave: NDArray[np.int64], shares: Floats) -> Floats:
    """``c = a_t n / n_t``: a wave counts by the weight that was fixed for it before its labels were asked for."""
    weights, rest = np.zeros(len(shares)), 1.0
    for t, share in enumerate(shares[:-1]):
        weights[t] = rest * share
        rest -= weights[t]
    weights[-1] = rest
    counts = np.bincount(wave, minlength=len(shares))
    per_draw = np.divide(weights * len(wave), counts, out=np.zeros(len(shares)), where=counts > 0)
    return np.asarray(per_draw[wave])
