"""Betting on the draws of one round: the growth of a stake against "the mean loss is at most m", and "at least m"."""

from __future__ import annotations

import numpy as np

from opmon.decisions.draw_values import DrawValues
from opmon.types import Floats

BETS: Floats = np.geomspace(1 / 128, 1 / 2, 7)
"""Bets as shares of ``1/m``, the largest there is; each doubles the last.

The best bet against a failure rate of ``m + δ`` is about ``δ / Var(v)``: for accuracies between 0.6 and 0.99, drops of
2 to 20 points and weights up to 10 it lies among these. A bet that is wrong by a factor of √2 grows 0.87 times as fast.
"""

RECOVERY_BETS: Floats = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2, 0.9])
"""Bets on recovery as shares of the largest there is, which is ``1/r`` where no value exceeds the line by more than
``r``."""

HIGHEST = 0.95
"""The largest share of a stake that is bet."""

SAME_RECOVERY_BETS: Floats = 0.9 / np.array([16.0, 8.0, 4.0, 2.0, 1.0])
"""Bets on recovery, the same in every round: the largest where no value exceeds the line by more than 16, 8, … 1."""

LOST = -1e4
"""The logarithm of what is left of a stake that may not be bet."""


def bets_on(reach: float, largest: float) -> Floats:
    """Bets as shares of ``1/reach``, on losses of up to ``largest`` that are rare: as many as :data:`BETS`, and lower.

    The best bet is about ``(δ/m) / y`` where losses of the size ``y`` make up the mean ``m + δ``; the lowest here is
    that for a mean a quarter above the line.
    """
    return np.asarray(np.geomspace(min(float(BETS[0]), reach / (4 * largest)), float(BETS[-1]), len(BETS)))


def log_growth(drawn: DrawValues, line: float, bets: Floats = BETS) -> Floats:
    r"""``log Π_j (1 + λ_g c_j (v_j − m))`` for every bet :math:`\lambda_g = f_g/m`: the logarithms of e-values.

    >>> failed = DrawValues(np.array([1.0, 0.0]), np.ones(2))
    >>> log_growth(failed, 0.1, np.array([0.5])).round(3)
    array([1.012])
    """
    staked = np.minimum(bets[:, None] * drawn.stakes, HIGHEST)
    return np.asarray(np.log1p(staked * (drawn.values / line - 1)).sum(axis=1))


def same_growth(drawn: DrawValues, line: float) -> tuple[Floats, Floats]:
    r"""What :func:`log_growth` and :func:`recovery_growth` give, with bets that are the same in every round.

    Products over rounds of different means :math:`\theta_r` are e-values against *their mean* only if no round is bet
    on more than another, whatever its weights. A bet that a round's stakes or weights do not allow is therefore lost,
    and not made smaller: 0 is an e-value, too.

    >>> light = DrawValues(np.zeros(20), np.ones(20), np.full(20, 1.0))
    >>> heavy = DrawValues(np.zeros(20), np.ones(20), np.full(20, 4.5))
    >>> [np.flatnonzero(same_growth(each, 0.1)[1] > LOST).tolist() for each in (light, heavy)]
    [[0, 1, 2, 3, 4], [0, 1]]
    """
    most = float(drawn.stakes.max())
    against = np.where(BETS * most > HIGHEST, LOST, log_growth(drawn, line))
    if drawn.highest is None:
        return against, np.zeros(len(SAME_RECOVERY_BETS))
    staked = SAME_RECOVERY_BETS[:, None] * drawn.stakes
    room = np.maximum(drawn.highest - line, 0)
    allowed = np.array([bool((each * room <= HIGHEST).all()) for each in staked])
    grown = np.full(len(staked), LOST)
    grown[allowed] = np.log1p(-staked[allowed] * (drawn.values - line)).sum(axis=1)
    return against, grown


def recovery_growth(surplus: Floats, stakes: Floats, room: Floats | None, bets: Floats = RECOVERY_BETS) -> Floats:
    r"""``log Π_j (1 − λ_{gj} c_j s_j)`` with :math:`\lambda_{gj} = f_g/r_j`: e-values against "the mean is at least 0".

    ``surplus`` :math:`s_j = v_j - m` are the values above the line, ``room`` :math:`r_j` the most each could have been,
    which is known before the labels. Without it nothing can be bet: one large loss not drawn yet might outweigh all.

    >>> right = np.array([-0.1, -0.1])
    >>> recovery_growth(right, np.ones(2), np.full(2, 0.9), np.array([0.9])).round(3)
    array([0.191])
    """
    if room is None:
        return np.zeros(len(bets))
    staked = np.minimum(bets[:, None] * stakes, HIGHEST) / np.maximum(room, 1e-9)
    return np.asarray(np.log1p(-staked * surplus).sum(axis=1))
