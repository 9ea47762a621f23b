"""The log of production as it is read: slices of it, and batches of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from opmon.errors import InputError
from opmon.types.moments import require_aware

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece of the production log that one round reads: from ``start`` (included) to ``stop`` (excluded).

    ``part`` names a file, a table, a partition; ``start`` and ``stop`` mean something to the source alone. The next
    slice of the same part starts where the last one stopped, so a source needs no memory of its own.
    """

    part: str
    start: str
    stop: str
    rows: int
    arrived_at: datetime
    """When the oldest of these rows became readable, in UTC: what ``max_age`` is measured from."""

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise InputError(f"a slice has at least one row; got rows={self.rows} for part {self.part!r}")
        require_aware(self.arrived_at, "arrived_at")


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive rows of one slice: row ``i`` of ``rows`` is row ``first_row + i`` of slice number ``slice_index``."""

    slice_index: int
    first_row: int
    rows: pa.RecordBatch
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Rows of the slice that are left out, because they cannot be read: why, and how many. They keep their numbers."""
