"""What every file format can do for the source: count rows, say their types, read them, take single ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from opmon.sources._folder import Entry
from opmon.sources._position import Position

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Span:
    """Rows that can be read: where they stop, and how many they are (0: only the position moves)."""

    stop: Position
    rows: int


class Format(Protocol):
    """One file format. ``age`` is how many seconds ago the file was last written."""

    strong: ClassVar[bool]
    """Whether the file states its types; text leaves them to be inferred, and yields where they differ."""

    def count(self, entry: Entry, start: Position, limit: int | None, age: float) -> Span | None:
        """The rows after ``start``, or None where there is nothing to read yet."""
        ...

    def verify(self, entry: Entry, position: Position) -> None:
        """Raise SourceError unless the file is still the one in which ``position`` was reached."""
        ...

    def schema(self, entry: Entry, stop: Position) -> pa.Schema:
        """The columns and their types, from the file's beginning, not beyond ``stop``."""
        ...

    def batches(self, entry: Entry, start: Position, stop: Position, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows as ``schema`` has them: a column that the file does not have is null."""
        ...

    def take(
        self, entry: Entry, start: Position, stop: Position, rows: Sequence[int], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Single rows, counted from ``start``; ``rows`` are in order, each once."""
        ...
