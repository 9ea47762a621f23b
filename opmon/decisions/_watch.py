"""The evidence of a sequential rule: how it grows, when it alarms and when the alarm is over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from opmon.decisions._betting import BETS, RECOVERY_BETS
from opmon.decisions._bound import Bound
from opmon.types import Document, Floats, Json

PRIOR: Floats = np.array([1, 2, 3, 4, 3, 2, 1]) / 16
"""The split of the stake over the bets of :data:`opmon.decisions._betting.BETS`."""

RECOVERY_PRIOR: Floats = np.full(len(RECOVERY_BETS), 1 / len(RECOVERY_BETS))
MOST = 1e30


@dataclass(frozen=True, eq=False)
class Growth:
    """The logarithms of a round's e-values: what it adds to the evidence, whatever other rounds say."""

    alarm: Floats
    """For each of :data:`BETS`, against "the mean loss is at most m"."""
    recovery: Floats
    """For each of :data:`RECOVERY_BETS`, against "the mean loss is at least m"."""
    labels: int

    @classmethod
    def none(cls) -> Growth:
        return cls(np.zeros(len(BETS)), np.zeros(len(RECOVERY_BETS)), 0)

    @classmethod
    def of(cls, kept: Document) -> Growth:
        """The growth that :meth:`kept` gave."""
        return cls(np.asarray(kept["alarm"]), np.asarray(kept["recovery"]), int(kept["labels"]))

    def kept(self) -> dict[str, Json]:
        """The growth as JSON can hold it."""
        return {"alarm": _digits(self.alarm), "recovery": _digits(self.recovery), "labels": self.labels}

    def and_(self, other: Growth) -> Growth:
        """The growth of two rounds together: e-values are multiplied."""
        return Growth(self.alarm + other.alarm, self.recovery + other.recovery, self.labels + other.labels)


@dataclass(frozen=True)
class Watch:
    r"""The evidence against "the mean loss is at most m in every round", and the state it has led to.

    Per bet ``g``: :math:`M_g \leftarrow (M_g + w_s \pi_g) E_g`, where :math:`E_g` is the e-value of the round and
    :math:`w_s` the weight of beginning now (:mod:`_bound`). The evidence is :math:`\sum_g M_g`; an alarm takes 1.

    An alarm holds until the same recursion against the opposite, "the mean loss is at least m in every round", reaches
    1 with weights that sum to :math:`\alpha_r = 1/\text{recovery}`: a model that stays at the line or on its wrong side
    is *ever* called recovered with probability :math:`\alpha_r` at most, for each alarm (Ville). Then a new watch
    begins with a part of ``alpha`` of its own, so the bound holds for all healthy times of a life together, and the
    next alarm does not wait longer because life was long.
    """

    capital: tuple[float, ...] = (0.0,) * len(PRIOR)
    recovered: tuple[float, ...] = (0.0,) * len(RECOVERY_PRIOR)
    judged: int = 0
    """The rounds judged, in the whole life."""
    since: int = 0
    """The number of them before the present watch, or the present alarm, began."""
    number: int = 1
    """The number of the watch in its life: one more with every recovery."""
    alarmed: bool = False

    @classmethod
    def of(cls, details: Document, setting: Document) -> Watch:
        """The watch that :meth:`kept` gave; a new one where the rule had other settings then."""
        kept = details.get("watch")
        if not isinstance(kept, Mapping) or details.get("setting") != dict(setting):
            return cls()
        capital, recovered = (_numbers(kept.get(key)) for key in ("capital", "recovered"))
        if len(capital) != len(PRIOR):
            return cls()
        if len(recovered) != len(RECOVERY_PRIOR):
            recovered = cls().recovered
        counts = {key: int(kept.get(key, default)) for key, default in (("judged", 0), ("since", 0), ("number", 1))}
        return cls(capital, recovered, alarmed=bool(kept.get("alarmed")), **counts)

    def kept(self) -> dict[str, Json]:
        """The watch as JSON can hold it."""
        return {
            "capital": _digits(self.capital),
            "recovered": _digits(self.recovered),
            "judged": self.judged,
            "since": self.since,
            "number": self.number,
            "alarmed": self.alarmed,
        }

    @property
    def evidence(self) -> float:
        """The evidence against "the mean loss is at most m"; an alarm takes 1, and keeps it as it was then."""
        return math.fsum(self.capital)

    @property
    def recovery(self) -> float:
        """The evidence against "the mean loss is at least m" since the alarm; ending it takes 1."""
        return math.fsum(self.recovered)

    def after(self, growth: Growth, bound: Bound, elapsed: timedelta | None, recovery: float) -> Watch:
        """The watch after one more round."""
        lasted, judged = self.judged - self.since, self.judged + 1
        if self.alarmed:
            weight = Bound(alpha=1 / recovery).weight(lasted, None)
            grown = replace(
                self, judged=judged, recovered=_grown(self.recovered, weight * RECOVERY_PRIOR, growth.recovery)
            )
            return Watch(judged=judged, since=judged, number=self.number + 1) if grown.recovery >= 1 else grown
        weight = bound.of_watch(self.number).weight(lasted, elapsed)
        grown = replace(self, judged=judged, capital=_grown(self.capital, weight * PRIOR, growth.alarm))
        return replace(grown, alarmed=True, since=judged) if grown.evidence >= 1 else grown


def _grown(capital: Sequence[float], begun: Floats, log_growth: Floats) -> tuple[float, ...]:
    grown = (np.asarray(capital) + begun) * np.exp(np.minimum(log_growth, 600.0))
    return tuple(np.minimum(grown, MOST).tolist())


def _digits(values: Sequence[float] | Floats) -> list[float]:
    return [float(f"{value:.12g}") for value in values]


def _numbers(kept: object) -> tuple[float, ...]:
    return tuple(float(value) for value in kept) if isinstance(kept, list | tuple) else ()
