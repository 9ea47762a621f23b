"""What some failures of a round have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from opmon.types.documents import Document
from opmon.wording import percent

Kind = Literal["condition", "confusion", "rest"]


@dataclass(frozen=True)
class Differing:
    """What inputs since a moment differ in most from those before."""

    words: str
    """What holds for more of them; empty where nothing that is known of them tells them apart."""
    since: float | None = None
    """The share of the inputs since then that it holds for."""
    before: float | None = None


@dataclass(frozen=True)
class FailureGroup:
    """A group of failures: each failure is in one."""

    kind: Kind
    words: tuple[str, ...]
    """What they have in common, such as "age over 60" and "country = DE", and since when; empty of the rest."""
    failures: int
    """How many labelled failures are in it."""
    share: float | None = None
    """Its share of all failures of the round, by the design of the draws; None where that does not tell."""
    low: float | None = None
    high: float | None = None
    rate: float | None = None
    """How often the model fails on inputs that have this in common."""
    lift: float | None = None
    """How many times as often as on the inputs that no cause holds for."""
    lift_at_least: float | None = None
    p: float | None = None
    """How probable so strong a contrast would be by chance, corrected for all conditions that were looked at."""
    examples: tuple[str, ...] = ()
    """Some of its inputs."""
    pairs: Mapping[str, int] = field(default_factory=dict)
    """What it said and what is true, the most frequent ones."""

    rounds: tuple[int, int] | None = None
    """The first and the last of the rounds that ``lift`` and ``p`` are told of; None: its own alone, as all else is."""
    since: str | None = None
    """Since when there are more of them, as ISO 8601 has it; None where there were as many before."""
    since_round: int | None = None
    """The round in which that moment lies."""
    differing: Differing | None = None
    """What the inputs since then differ in; None where that was not asked."""

    @property
    def name(self) -> str:
        """What they have in common, in words.

        >>> FailureGroup("condition", ("age over 60", "country = DE", "since round 5"), 9, since_round=5).name
        'age over 60 and country = DE, since round 5'
        """
        if self.since_round is None:
            return " and ".join(self.words) or "nothing found in common"
        *others, since = self.words
        return ", ".join([" and ".join(others), since] if others else [since])

    @property
    def over(self) -> str:
        """The rounds that its contrast is told of, in words; empty where it is its own."""
        return "" if self.rounds is None else f"over rounds {self.rounds[0]} to {self.rounds[1]}"

    @property
    def is_since(self) -> bool:
        """Whether it is made of all failures since a moment, whatever else holds for them.

        >>> FailureGroup("condition", ("since round 5",), 20, since_round=5).is_since
        True
        """
        return self.since_round is not None and len(self.words) == 1

    def contrast(self, come: str = "the model fails") -> str:
        """How much more often they come there, in a clause; empty where that was not found out.

        >>> since = {"since_round": 5, "rounds": (1, 8)}
        >>> FailureGroup("condition", ("since round 5",), 20, lift=4.0, lift_at_least=2.0, **since).contrast()
        'Over rounds 1 to 8, the model fails 4.0 times as often since then as before, at least 2.0 times'
        >>> FailureGroup("condition", ("age over 60",), 9, lift=3.0, lift_at_least=1.5).contrast("large errors come")
        'Large errors come 3.0 times as often there as where nothing of the kind holds, at least 1.5 times'
        """
        if self.lift is None or self.lift_at_least is None:
            return ""
        begin = f"O{self.over[1:]}, {come}" if self.over else f"{come[:1].upper()}{come[1:]}"
        where = "since then as before" if self.is_since else "there as where nothing of the kind holds"
        return f"{begin} {self.lift:.1f} times as often {where}, at least {self.lift_at_least:.1f} times"

    @property
    def difference(self) -> str:
        """What the inputs since then differ in, in a sentence; empty where that was not asked."""
        if self.differing is None:
            return ""
        if self.differing.since is None or self.differing.before is None:
            return "Nothing that is known of the inputs tells those since then from those before."
        now, before = percent(self.differing.since, 0), percent(self.differing.before, 0)
        return f"What the inputs since then differ in most: {self.differing.words}, {now} of them and {before} before."

    @property
    def anyway(self) -> float | None:
        """The share of it that would fail as well at the rate of inputs that no cause holds for; which ones they are,
        nothing tells.

        >>> FailureGroup("condition", ("age missing",), 20, lift=4.0).anyway
        0.25
        """
        return None if self.lift is None or self.lift <= 0 else min(1.0, 1 / self.lift)

    @classmethod
    def of(cls, stored: Document) -> Self:
        """As JSON holds it."""
        known = {**stored, "words": tuple(stored["words"]), "examples": tuple(stored["examples"])}
        if stored.get("rounds"):
            known["rounds"] = tuple(stored["rounds"])
        if stored.get("differing"):
            known["differing"] = Differing(**stored["differing"])
        return cls(**known)
