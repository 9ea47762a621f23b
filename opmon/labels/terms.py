"""How the tasks of a monitor are handed out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class QueueTerms:
    """How the tasks of one monitor are handed out."""

    lease: timedelta = timedelta(minutes=15)
    """How long nobody else is given what an annotator has taken."""
    provider: str | None = None
    """The label provider, by its identity, whose tasks are not handed out here as well."""
