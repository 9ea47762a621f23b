"""Betting against «the mean loss is at most m»: the growth of a stake over the draws of one round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.decisions.draw_values import DrawValues

Floats = NDArray[np.float64]

BETS: Floats = np.geomspace(1 / 128, 1 / 2, 7)
"""Bets as shares of ``1/m``, the largest there is; each doubles the last.

The best bet against a failure rate of ``m + δ`` is about ``δ / Var(v)``: for accuracies between 0.6 and 0.99, drops of
2 to 20 points and weights up to 10 it lies among these. A bet that is wrong by a factor of √2 grows 0.87 times as fast.
"""

HIGHEST = 0.95
"""No stake is put at risk as a whole."""


def log_growth(drawn: DrawValues, line: float, bets: Floats = BETS) -> Floats:
    r"""``log Π_j (1 + λ_g c_j (v_j − m))`` for every bet :math:`\lambda_g = f_g/m`: the logarithms of e-values.

    >>> failed = DrawValues(np.array([1.0, 0.0]), np.ones(2))
    >>> log_growth(failed, 0.1, np.array([0.5])).round(3)
    array([1.012])
    """
    staked = np.minimum(bets[:, None] * drawn.stakes, HIGHEST)
    return np.asarray(np.log1p(staked * (drawn.values / line - 1)).sum(axis=1))
