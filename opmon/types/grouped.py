"""What some failures of a round have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from opmon.types.documents import Document

Kind = Literal["condition", "confusion", "rest"]


@dataclass(frozen=True)
class FailureGroup:
    """A group of failures: each failure is in one."""

    kind: Kind
    words: tuple[str, ...]
    """What they have in common, such as "age over 60" and "country = DE"; empty of the rest."""
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

    @property
    def name(self) -> str:
        """What they have in common, in words."""
        return " and ".join(self.words) or "nothing found in common"

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
        return cls(**{**stored, "words": tuple(stored["words"]), "examples": tuple(stored["examples"])})
