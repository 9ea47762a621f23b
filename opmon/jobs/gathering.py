"""Few rows of one slice and few of the next go to the model together: one at a time, each would cost a whole batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FEW, TOGETHER = 64, 1024
"""Batches of fewer rows than the first are put together, up to about so many rows as the second."""
_BYTES = 4 << 20
"""And up to about so many bytes: rows may hold pictures."""
_IN_A_ROW = 4
"""Rows one after the other that lack a column are a batch of their own from so many on: see ``max_unscorable``."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs of a job, with the number of the slice that each is of and its number in that slice."""

    rows: pa.RecordBatch
    slices: NDArray[np.int32]
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, index: int, rows: pa.RecordBatch, numbers: NDArray[np.int64]) -> Rows:
        """Of one slice."""
        return cls(rows, np.full(len(numbers), index, np.int32), numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def slice(self, start: int, stop: int) -> Rows:
        """The rows from ``start`` on, before ``stop``."""
        return Rows(self.rows.slice(start, stop - start), self.slices[start:stop], self.numbers[start:stop])


@dataclass
class Gathered:
    """Rows that wait to go to the model together."""

    pieces: list[Rows] = field(default_factory=list)
    count: int = 0
    size: int = 0
    """Bytes."""

    def takes(self, piece: Rows) -> bool:
        """Whether a piece can go with those that wait."""
        if not self.pieces:
            return True
        return len(piece) < FEW and self.pieces[0].rows.schema.equals(piece.rows.schema, check_metadata=True)

    @property
    def is_full(self) -> bool:
        """Whether they should go."""
        return self.count >= (TOGETHER if len(self.pieces) > 1 else FEW) or self.size >= _BYTES

    def add(self, piece: Rows) -> None:
        self.pieces.append(piece)
        self.count += len(piece)
        self.size += piece.rows.nbytes

    def given(self, most: int) -> Iterator[Rows]:
        """All that waited, at most so many rows together; nothing waits any more."""
        pieces, self.pieces, self.count, self.size = self.pieces, [], 0, 0
        if not pieces:
            return
        whole = _joined(pieces)
        cuts = {len(whole), *range(0, len(whole), most)}
        cuts |= set() if len(pieces) == 1 else _ends_of_gaps(whole.rows)
        ordered = sorted(cuts)
        for start, stop in itertools.pairwise(ordered):
            yield whole.slice(start, stop)


def _joined(pieces: Sequence[Rows]) -> Rows:
    if len(pieces) == 1:
        return pieces[0]
    table = pa.Table.from_batches([piece.rows for piece in pieces]).combine_chunks()
    rows = pa.RecordBatch.from_arrays([_whole(column) for column in table.columns], schema=table.schema)
    slices, numbers = [piece.slices for piece in pieces], [piece.numbers for piece in pieces]
    return Rows(rows, np.concatenate(slices), np.concatenate(numbers))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _ends_of_gaps(rows: pa.RecordBatch) -> set[int]:
    """Where rows that lack a column begin and end, where some follow each other."""
    cuts: set[int] = set()
    for column in rows.columns:
        if not column.null_count:
            continue
        lacking = np.concatenate([[0], np.asarray(column.is_null()).astype(np.int8), [0]])
        steps = np.diff(lacking)
        starts, stops = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
        long = stops - starts >= _IN_A_ROW
        cuts |= {*starts[long].tolist(), *stops[long].tolist()}
    return cuts
