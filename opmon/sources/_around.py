"""A source around another one: what it does not say itself, the other says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from opmon.abc import Flaw, Source
from opmon.types import Batch, Slice


@dataclass(frozen=True)
class Around(Source):
    """Passes every hook on to ``source``."""

    source: Source

    @property
    def answers(self) -> tuple[str, ...]:
        return self.source.answers

    @property
    def inclusion(self) -> str | None:
        return self.source.inclusion

    @property
    def asks(self) -> str | None:
        return self.source.asks

    @property
    def patience(self) -> float:
        return self.source.patience

    def constants(self, piece: Slice) -> Mapping[str, str | int | None]:
        return self.source.constants(piece)

    def lost(self, slices: Sequence[Slice]) -> Mapping[str, int]:
        return self.source.lost(slices)

    def flaws(self, positions: Mapping[str, str], limit: int | None = None) -> Sequence[Flaw]:
        return self.source.flaws(positions, limit)

    def begins(self) -> Mapping[str, str]:
        return self.source.begins()

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        return self.source.pending(positions, limit)

    def for_cycle(self) -> Source:
        return replace(self, source=self.source.for_cycle())

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        return self.source.read(slices, columns)

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        return self.source.read_some(slices, numbers)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        return self.source.fetch(slices, rows)
