"""A source that may hang: whoever asks it waits for so long at most, and for each batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from opmon.abc import Flaw
from opmon.sources._around import Around
from opmon.types import Batch, Slice
from opmon.waiting import Asking


@dataclass(frozen=True)
class Patient(Around):
    """Another source, asked with a limit on its time; ``role`` and ``monitor`` say for whom.

    A disk that hangs, a store or a database that does not answer costs this monitor its inputs alone: what else a cycle
    does goes on.
    """

    monitor: str
    role: str = "source"

    def flaws(self, positions: Mapping[str, str], limit: int | None = None) -> Sequence[Flaw]:
        return self._asking.call(lambda: self.source.flaws(positions, limit))

    def begins(self) -> Mapping[str, str]:
        return self._asking.call(self.source.begins)

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        return self._asking.call(lambda: self.source.pending(positions, limit))

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        return self._asking.each(lambda: self.source.read(slices, columns), _size)

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        return self._asking.each(lambda: self.source.read_some(slices, numbers), _size)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        return self._asking.call(lambda: self.source.fetch(slices, rows))

    @property
    def _asking(self) -> Asking:
        where = self.source.asks
        return Asking(
            kind="source",
            key=f"the {self.role} of {self.monitor}",
            shown=f"the {self.role}{f' {where}' if where else ''}",
            target=where or f"{self.role} of {self.monitor}",
            seconds=self.source.patience,
        )


def _size(batch: Batch) -> int:
    return int(batch.rows.nbytes)
