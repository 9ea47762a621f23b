"""What every file format can do for the source: count rows, say their types, read them, take single ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from opmon.sources._damage import Lost
from opmon.sources._folder import Entry
from opmon.sources._position import Position

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Span:
    """Rows that can be read: where they stop, and how many they are (0: only the position moves)."""

    stop: Position
    rows: int
    lost: Lost | None = None
    """The first of them that cannot be read, as far as counting tells: they are among ``rows`` all the same."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the beginning of a file tells: its columns and their types."""

    schema: pa.Schema
    lost: Lost | None = None
    """The first row of the slice in it that cannot be read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a file that are read together."""

    entry: Entry
    start: Position
    stop: Position


class Joining(Protocol):
    """How small files of one kind are read as one."""

    def kind(self, entry: Entry) -> bytes | None:
        """What files of one kind have in common; None where this file must be read alone."""
        ...

    def joined(self, pieces: Sequence[Piece]) -> Piece:
        """The rows of files of one kind as if they stood in one file."""
        ...


class Format(Protocol):
    """One file format. ``age`` is how many seconds ago the file was last written."""

    strong: ClassVar[bool]
    """Whether the file states its types; text leaves them to be inferred, and yields where they differ."""

    def count(self, entry: Entry, start: Position, limit: int | None, age: float) -> Span | None:
        """The rows after ``start``, or None where there is nothing to read yet."""
        ...

    def verify(self, entry: Entry, position: Position) -> None:
        """Raise Damaged unless the file is still the one in which ``position`` was reached."""
        ...

    @property
    def joining(self) -> Joining | None:
        """How small files are read as one; None where they are read one by one."""
        ...

    def head(self, piece: Piece, mixed: bool = True) -> Head:
        """The columns and their types, from the file's beginning, not beyond where the piece stops.

        ``mixed``: whether a column of text may hold different kinds of values; otherwise that raises Damaged.
        """
        ...

    def batches(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch | Lost]:
        """The rows as ``schema`` has them, and in their place those that cannot be read.

        A column that the file does not have is null.
        """
        ...

    def take(self, piece: Piece, rows: Sequence[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Single rows, counted from the piece's start; ``rows`` are in order, each once."""
        ...
