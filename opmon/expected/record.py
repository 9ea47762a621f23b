"""How well predictions did in the rounds whose labels have come since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from scipy.special import bdtrc

from opmon.quantities import Quantity
from opmon.wording import counted

LATELY = 10
SELDOM = 0.05
"""So many misses or more are worth a word where they are less probable than this."""
GREW = 2.0
"""The error of the last rounds is worth a word where it is so many times that of those before."""


@dataclass(frozen=True)
class Told:
    """What was told of a round before its labels, and its estimate."""

    round: int
    value: float
    low: float
    high: float
    level: float
    estimate: float
    estimate_low: float
    estimate_high: float

    @property
    def off(self) -> float:
        """By how much the prediction was too high."""
        return self.value - self.estimate

    @property
    def missed(self) -> bool:
        """Whether they are further apart than both intervals together bear."""
        side = self.off > 0
        own = self.value - self.low if side else self.high - self.value
        others = self.estimate_high - self.estimate if side else self.estimate - self.estimate_low
        return self.off**2 > own**2 + others**2


@dataclass(frozen=True)
class Record:
    """The rounds whose labels have come since they were foreseen."""

    rounds: int
    error: float
    """How far off it was, on average."""
    missed: int
    """How often its interval missed the estimate, with regard to the estimate's own interval."""
    lately: str = ""
    """What was wrong in the last rounds, in words; empty where nothing was."""

    @classmethod
    def of(cls, told: Sequence[Told], quantity: Quantity) -> Self | None:
        """Of rounds, oldest first; None where there are none."""
        if not told:
            return None
        error = sum(abs(each.off) for each in told) / len(told)
        return cls(len(told), error, sum(each.missed for each in told), _lately(told, quantity))

    def text(self, quantity: Quantity) -> str:
        """In a sentence."""
        missed = {0: "never missed", 1: "missed once"}.get(self.missed, f"missed {self.missed} times")
        error = quantity.difference(self.error, quantity.digits(0.0, self.error))
        off = f"off by {error} on average over {counted(self.rounds, 'round')}"
        return f"such predictions were {off}, and their intervals {missed}"


def _lately(told: Sequence[Told], quantity: Quantity) -> str:
    last = told[-LATELY:]
    missed = [each.round for each in last if each.missed]
    allowed = 1 - min(each.level for each in last)
    said = []
    if missed and float(bdtrc(len(missed) - 1, len(last), allowed)) < SELDOM:
        which = f"{'round' if len(missed) == 1 else 'rounds'} {', '.join(map(str, missed))}"
        said.append(f"the interval missed in {len(missed)} of the last {counted(len(last), 'round')} ({which})")
    new, old = told[-LATELY // 2 :], told[: -LATELY // 2]
    if len(old) >= LATELY // 2:
        now, before = (sum(abs(each.off) for each in some) / len(some) for some in (new, old))
        if now > GREW * before:
            after, first = (quantity.difference(error, quantity.digits(0.0, error)) for error in (now, before))
            grew = f"{after} on average, from {first} before"
            said.append(f"the error grew in the last {len(new)} rounds to {grew}")
    return f"They were wrong lately: {'; '.join(said)}." if said else ""
