"""Evidence from differences of losses on the same inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.decisions._betting import BETS, HIGHEST
from opmon.decisions.draw_values import terms
from opmon.types import Sample

Floats = NDArray[np.float64]

WIDEST = {"rhc": 20.0}
"""The largest weight of a draw that bets allow for: 10, which is ``1 / defensive``, where nothing is said here. RHC
multiplies it by how far the sum of a random group is from the mean."""
BOLD = 2.0
"""Differences are rare and small in variance: bets are this many times bolder than those on a level."""


def paired_growth(
    sample: Sample, differences: Floats, margin: float, coefficients: Floats | None = None
) -> tuple[Floats, Floats, Floats, int] | None:
    r"""``log Π_j (1 + λ_g c_j x_j)`` with unbiased values ``x`` of the mean of ``differences − margin``.

    Also ``x``, the stakes, and how many draws differ at all. None where a draw weighs more than the bets allow for.
    ``x`` is at least ``−(1 + d)·w``, hence :math:`\lambda_g = f_g / ((1 + d)(w + 1))`.
    """
    heard = sample.answered & ~np.isnan(differences)
    surplus = np.where(heard, np.nan_to_num(differences) - margin, 0.0)
    factors, known, stakes = terms(sample.draw, surplus, coefficients)
    widest = (
        float(factors.max(initial=1.0))
        if sample.draw.design in ("srs", "ces", "ssrs", "css")
        else WIDEST.get(sample.draw.design, 10.0)
    )
    if float(factors.max(initial=0.0)) > widest * (1 + 1e-9) or not heard.any():
        return None
    values, stakes = (known + factors * surplus)[heard], stakes[heard]
    reach = (1 + margin) * (widest if not known.any() else widest + 1)
    bets = np.minimum(BOLD * BETS[:, None] * stakes, HIGHEST) / reach
    disagree = int((np.abs(differences[heard]) > 0).sum())
    return np.log1p(bets * values).sum(axis=1), values, stakes, disagree
