"""Counts of the inputs that a recorder was given, wrote and dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opmon.types import Json

KEY = b"opmon.recorder"
"""Where a file's metadata tells the counts."""
REASONS: Mapping[str, str] = {
    "buffer_full": "the recorder's buffer was full",
    "disk_full": "the recorder's disk was full",
    "unreachable": "the recorder's store did not answer",
    "unwritable": "the recorder had no column for a value",
    "too_large": "the request was larger than the recorder takes",
    "closed": "the recorder was closed",
}
"""Why an input was not written."""


@dataclass(slots=True)
class Tally:
    """Inputs since the recorder began in this process."""

    recorded: int = 0
    """All it was given, written or not."""
    written: int = 0
    passed_over: int = 0
    """Seen, and not drawn by the sample."""
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def waiting(self) -> int:
        """Neither written nor dropped yet."""
        return self.recorded - self.written - self.passed_over - self.dropped.total()

    def copy(self) -> Tally:
        return Tally(self.recorded, self.written, self.passed_over, Counter(self.dropped))

    def plain(self) -> dict[str, Json]:
        """The counts as JSON has them."""
        dropped = {reason: count for reason, count in sorted(self.dropped.items()) if count}
        return {
            "recorded": self.recorded,
            "written": self.written,
            "passed_over": self.passed_over,
            "dropped": dropped,
        }


@dataclass(frozen=True, slots=True)
class Stats:
    """The state of a recorder in its process: ``recorded == written + passed_over + waiting + all dropped``."""

    recorded: int
    written: int
    passed_over: int
    dropped: Mapping[str, int]
    """Why, and how many."""
    waiting: int
    waiting_bytes: int
    files: int
    trouble: str | None
    """Why the last file could not be written; None where it could."""
