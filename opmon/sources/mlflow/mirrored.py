"""What the sources of MLflow have in common: what was logged is copied to this machine and read there."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from opmon.abc import Source
from opmon.registry.logged import Logged
from opmon.sources._position import Position, parse
from opmon.sources._since import Since, moment_of
from opmon.sources.files import Files
from opmon.types import Batch, Slice

if TYPE_CHECKING:
    import pyarrow as pa

SINCE = ".since"
"""A part that no copy can be: its position is the moment from which on is read."""
MARK = "~"
"""Stands between a position in a copy and what is needed to make the same copy again."""


class Mirrored(Source):
    """A source whose rows are those of copies."""

    since: Since

    @property
    def patience(self) -> float:
        """What is copied may be large; each call to MLflow has its own limit."""
        return 1800.0

    def begins(self) -> Mapping[str, str]:
        """With what was logged after ``since``."""
        moment = moment_of(None if self.since is None else str(self.since), datetime.now(UTC))
        return {} if moment is None else {SINCE: str(Position(modified_ns=int(moment.timestamp() * 1e9)))}

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order; all batches have the same columns and types."""
        yield from self.copies_of(slices).read(_in_copies(slices), columns)

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        """The rows of some of the slices, with the columns and types of all."""
        yield from self.copies_of(slices).read_some(_in_copies(slices), numbers)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again, ordered by slice, then as asked."""
        return self.copies_of(slices).fetch(_in_copies(slices), rows)

    @abstractmethod
    def copies_of(self, slices: Sequence[Slice]) -> Files:
        """The copies of what the slices need, fetched again where they are gone."""


def began(positions: Mapping[str, str]) -> int:
    """From when on a monitor with these positions reads, in nanoseconds."""
    return parse(positions.get(SINCE), SINCE).modified_ns


def in_copies(positions: Mapping[str, str]) -> dict[str, str]:
    """The positions in the copies."""
    return {part: in_copy(stop) for part, stop in positions.items() if part != SINCE}


def in_copy(position: str) -> str:
    """The position in a copy, without what it tells of the copy."""
    return position.partition(MARK)[0]


def _in_copies(slices: Sequence[Slice]) -> list[Slice]:
    return [replace(piece, start=in_copy(piece.start), stop=in_copy(piece.stop)) for piece in slices]


@functools.cache
def logged(tracking_uri: str | None) -> Logged:
    """What was logged to a server."""
    return Logged(tracking_uri)
