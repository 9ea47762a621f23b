"""Evidence from differences of losses on the same inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opmon.abc import Estimator
from opmon.decisions._betting import BETS, HIGHEST, recovery_growth
from opmon.decisions._watch import Growth
from opmon.decisions.draw_values import bounded, terms
from opmon.types import Floats, Sample

BOLD = 2.0
"""Differences are rare and small in variance: bets are this many times bolder than those on a level."""


def paired_growth(
    sample: Sample, differences: Floats, margin: float, design: Estimator | None
) -> tuple[Growth, float, int] | None:
    r"""``log Π_j (1 + λ_g c_j x_j)`` with unbiased values ``x`` of the mean of ``differences − margin``.

    Also the mean difference, and how many draws differ at all. None where a draw weighs more than the bets allow for.
    ``x`` is at least ``−(1 + d)·r``, hence :math:`\lambda_g = f_g / ((1 + d) r)` with the reach ``r`` of the wave.
    """
    heard = sample.answered & ~np.isnan(differences)
    surplus = np.where(heard, np.nan_to_num(differences) - margin, 0.0)
    bettable = terms(replace(sample, outcomes=np.where(heard, sample.outcomes, np.nan)), surplus, design)
    if bettable.excess or not heard.any():
        return None
    values, stakes = bettable.of(surplus)[heard], bettable.stakes[heard]
    bets = np.minimum(BOLD * BETS[:, None] * stakes, HIGHEST) / ((1 + margin) * bettable.reach[heard])
    back = recovery_growth(values, stakes, bettable.highest(1 - margin)[heard] if bounded(sample) else None)
    growth = Growth(np.log1p(bets * values).sum(axis=1), back, len(values))
    ahead = float(stakes @ (values + margin) / stakes.sum())
    return growth, ahead, int((np.abs(differences[heard]) > 0).sum())
