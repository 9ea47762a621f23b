"""What a round was expected to be before any of its labels: a prediction, and no estimate."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Self

from opmon.types.documents import Document, Json


@dataclass(frozen=True)
class Expected:
    """The expected value of what a round estimates, as it was told when the round was scored, and what it stands on."""

    value: float
    low: float
    high: float
    level: float
    sd: float
    """The standard deviation, before it was widened."""
    widened: float = 1.0
    """How many times as wide the interval is because predictions before were further off than they should be."""
    rounds: tuple[int, ...] = ()
    """The rounds before whose labels it stands on; none: the model's own scores alone."""
    labels: int = 0
    """So many labels."""
    notes: tuple[str, ...] = ()
    """What a reader must know, in words."""

    @classmethod
    def of(cls, stored: Document | None) -> Self | None:
        """As JSON holds it; None where nothing was told."""
        if not stored or "value" not in stored:
            return None
        return cls(**{**stored, "rounds": tuple(stored["rounds"]), "notes": tuple(stored["notes"])})

    def stored(self) -> dict[str, Json]:
        """As JSON can hold it."""
        return asdict(self)


def unexpected(stored: Document | None) -> str:
    """Why nothing was told before the labels; empty where something was, or nobody asked."""
    return str(stored.get("why", "")) if stored else ""
