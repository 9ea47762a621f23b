"""The evidence of a sequential rule: how it grows, when it alarms and when the alarm is over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PRIOR: Floats = np.array([1, 2, 3, 4, 3, 2, 1]) / 16
"""How the stake is split over the bets of :data:`opmon.decisions._betting.BETS`."""

RECOVERY_BETS: Floats = np.array([0.5, 1.0, 2.0])
MOST = 1e30


@dataclass(frozen=True)
class Watch:
    r"""The evidence against «the mean loss is at most m in every round», and the state it has led to.

    Per bet ``g``: :math:`M_g \leftarrow (M_g + w_s \pi_g) E_g`, where :math:`E_g` is the e-value of the round and
    :math:`w_s` the weight of beginning now (:mod:`_bound`). The evidence is :math:`\sum_g M_g`; an alarm takes 1.

    An alarm holds until ``recovery`` reaches the number of rounds asked for: the same recursion
    :math:`R \leftarrow (R + 1) E`, with normal e-values against «the mean loss is at least m»; a model that stays
    exactly at the line is called recovered once in that many rounds on average at most. Then the evidence begins anew
    with what is left of the weights, so the bound holds for all healthy times of a life together.
    """

    capital: tuple[float, ...] = (0.0,) * len(PRIOR)
    judged: int = 0
    alarmed: bool = False
    recovery: float = 0.0

    @classmethod
    def of(cls, details: Mapping[str, Any], setting: Mapping[str, Any]) -> Watch:
        """As kept by :meth:`kept`; begun anew where the rule was set otherwise when it was kept."""
        found = details.get("watch")
        if not isinstance(found, Mapping) or details.get("setting") != dict(setting):
            return cls()
        capital = tuple(float(value) for value in found["capital"])
        if len(capital) != len(PRIOR):
            return cls()
        return cls(capital, int(found["judged"]), bool(found["alarmed"]), float(found["recovery"]))

    def kept(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "capital": [float(f"{value:.12g}") for value in self.capital],
            "judged": self.judged,
            "alarmed": self.alarmed,
            "recovery": float(f"{self.recovery:.12g}"),
        }

    @property
    def evidence(self) -> float:
        return math.fsum(self.capital)

    def after(self, log_growth: Floats, weight: float, log_recovery: float, patience: float) -> Watch:
        """The watch after one more round."""
        begun = np.array(self.capital) + weight * PRIOR
        capital = np.minimum(begun * np.exp(np.minimum(log_growth, 600.0)), MOST)
        grown = replace(self, capital=tuple(capital.tolist()), judged=self.judged + 1)
        if not self.alarmed:
            return replace(grown, alarmed=True, recovery=0.0) if grown.evidence >= 1 else grown
        recovery = min((self.recovery + 1) * math.exp(min(log_recovery, 60.0)), MOST)
        if recovery < patience:
            return replace(grown, recovery=recovery)
        return Watch(judged=self.judged + 1)


def recovery_growth(values: Floats, stakes: Floats) -> float:
    """The logarithm of an e-value against «the mean of ``values`` is at least 0», from their normal approximation.

    ``log mean_h exp(h z − h²/2)`` with ``z = −mean / s``. One more draw like the largest is counted into ``s``, a whole
    failure where all are equal, so that a round without any failure is not taken for certain.
    """
    n = len(values)
    if n == 0:
        return 0.0
    mean = float(stakes @ values / stakes.sum()) if stakes.sum() > 0 else 0.0
    more = float((values**2).max()) if values.max() > values.min() else 1.0
    s = math.sqrt((float(((values - mean) ** 2).sum()) + more) / n / n)
    z = float(np.clip(-mean / s, -50, 50))
    powers = RECOVERY_BETS * z - RECOVERY_BETS**2 / 2
    return float(np.logaddexp.reduce(powers) - math.log(len(powers)))
