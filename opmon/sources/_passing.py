"""A source that another one reads for: what is asked of the log, that one answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opmon.abc import Flaw, Source
from opmon.types import Batch, Slice

if TYPE_CHECKING:
    import pyarrow as pa


class Passing(Source):
    """Passes what is asked of the log on to ``reader``."""

    @property
    @abstractmethod
    def reader(self) -> Source:
        """The source that reads."""

    def constants(self, piece: Slice) -> Mapping[str, str | int | None]:
        return self.reader.constants(piece)

    def flaws(self, positions: Mapping[str, str], limit: int | None = None) -> Sequence[Flaw]:
        return self.reader.flaws(positions, limit)

    def begins(self) -> Mapping[str, str]:
        return self.reader.begins()

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        return self.reader.pending(positions, limit)

    def for_cycle(self) -> Source:
        return self.reader.for_cycle()

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        return self.reader.read(slices, columns)

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        return self.reader.read_some(slices, numbers)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        return self.reader.fetch(slices, rows)
