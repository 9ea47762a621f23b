"""Values of the draws of any design that each estimate the mean loss on their own: bets are made on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.errors import InputError
from opmon.problems import traits
from opmon.types import Floats, Sample

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DrawValues:
    r"""The ``values`` :math:`v_j \ge 0` and ``stakes`` :math:`c_j` of the answered draws.

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


def draw_values(sample: Sample, design: Estimator | None) -> DrawValues:
    """The values of the answered draws, by the estimator of their design; one that does not tell them is refused.

    >>> from opmon.estimators.sups import HansenHurwitz
    >>> from opmon.types import Draw
    >>> draw = Draw("sups", 100, np.array([3, 5]), columns={"probability": np.array([0.02, 0.01])})
    >>> draw_values(Sample(draw, np.array([1.0, 0.0])), HansenHurwitz()).values
    array([0.5, 0. ])
    """
    bettable, answered = terms(sample, sample.outcomes, design), sample.answered
    highest = bettable.highest(1.0)[answered] if bounded(sample) else None
    return DrawValues(bettable.of(sample.outcomes)[answered], bettable.stakes[answered], highest)


def bounded(sample: Sample) -> bool:
    """Whether no loss can exceed 1: a squared error can."""
    return (sample.problem is None or traits(sample.problem).is_share) and not (sample.outcomes > 1).any()


def terms(sample: Sample, losses: Floats, design: Estimator | None) -> Terms:
    """The terms of ``losses`` under the design of ``sample``, given which of its draws have an answer."""
    bettable = None if design is None else design.terms(sample, losses)
    if bettable is None:
        raise InputError(
            f"no rule can bet on draws of the design {sample.draw.design!r}: its estimator does not tell that each of "
            "them estimates the mean loss. Use accuracy_below, which looks at estimates alone, or another sampler."
        )
    return bettable
