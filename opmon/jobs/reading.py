"""The batches of a job on their way to the model, and what is kept of them beside its answers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.jobs.gathering import FEW, Gathered, Rows
from opmon.jobs.job import ScoreJob
from opmon.jobs.moments import Span
from opmon.jobs.versions import rows_of
from opmon.types import Batch, Slice

ROWS, TRACED_ROWS = 1 << 20, 2048
"""The most inputs that go to the model at a time, without activations and with them."""


@dataclass(frozen=True, eq=False)
class Beside:
    """The columns of a batch that are kept while the model answers it."""

    first: int
    """The number of its first row, counted over the rows of the job that are scored."""
    slice: NDArray[np.int32]
    """The number of the slice that each row is of, and below its number in it."""
    row: NDArray[np.int64]
    ids: pa.Array
    prediction: pa.Array | None
    span: Span
    sample: pa.RecordBatch | None
    numbers: pa.RecordBatch
    """The columns that variables and slices come from."""
    unreadable: Mapping[str, int]

    @property
    def stop(self) -> int:
        return self.first + len(self.row)


class Reading:
    """The batches of a job's slices from row ``skip`` on; those that are no inputs, or that another model
    version answered, are passed over.

    Few rows of many slices go to the model together. It sees each batch under the number of its first row. What is
    kept beside it waits in :attr:`beside`, one for each batch and in their order: batches are read ahead.
    """

    def __init__(self, job: ScoreJob, skip: int = 0) -> None:
        self.job, self.skip = job, skip
        self.most = ROWS if job.neurons is None else TRACED_ROWS
        self.beside: deque[Beside] = deque()
        self.unreadable: Counter[str] = Counter()
        """Why rows after the last batch could not be read, and how many."""

    def __iter__(self) -> Iterator[Batch]:
        count, waiting = 0, Gathered()
        for batch in self._batches():
            rows, numbers = self._ours(batch)
            first, count = count, count + len(numbers)
            if count <= self.skip and len(numbers):
                self.unreadable.clear()  # told by the part that has the row
                continue
            over = max(0, self.skip - first) if len(numbers) else 0
            if over:
                rows, numbers = rows.slice(over), numbers[over:]
            piece = Rows.of(batch.slice_index, rows, numbers) if len(numbers) < FEW else None
            if waiting.pieces and (piece is None or not waiting.takes(piece)):
                yield from self._given(waiting, first)
            self.unreadable.update(batch.unreadable)
            if over:
                self.unreadable.clear()
            if piece is None:
                yield from self._alone(first + over, batch.slice_index, rows, numbers)
            elif len(piece):
                waiting.add(piece)
                if waiting.is_full:
                    yield from self._given(waiting, count)
        yield from self._given(waiting, count)

    def _alone(self, first: int, index: int, rows: pa.RecordBatch, numbers: NDArray[np.int64]) -> Iterator[Batch]:
        """Rows of one slice that are many by themselves; ``first`` is the number of the first of them in the job."""
        slices = np.full(len(numbers), index, np.int32)
        for start in range(0, len(numbers), self.most):
            part, of = rows.slice(start, self.most), slice(start, start + self.most)
            self.beside.append(self._beside(first + start, part, slices[of], numbers[of]))
            yield Batch(0, first + start, part)

    def _given(self, waiting: Gathered, stop: int) -> Iterator[Batch]:
        """All that waited, of which the last is row ``stop - 1`` of the job."""
        first = stop - waiting.count
        for piece in waiting.given(self.most):
            self.beside.append(self._beside(first, piece.rows, piece.slices, piece.numbers))
            yield Batch(0, first, piece.rows)
            first += len(piece)

    def _batches(self) -> Iterator[Batch]:
        job = self.job
        numbers = tuple(number for number in job.numbers if not self._excluded(job.slices[number]))
        whole = numbers == tuple(range(len(job.slices)))
        return job.source.read(job.slices) if whole else job.source.read_some(job.slices, numbers)

    def _excluded(self, piece: Slice) -> bool:
        """Whether the name of a slice's part tells that none of its rows is an input."""
        where = self.job.where
        return where is not None and where.excludes(self.job.source.constants(piece))

    def _ours(self, batch: Batch) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        numbers = np.arange(batch.first_row, batch.first_row + batch.rows.num_rows, dtype=np.int64)
        version, where, thinning = self.job.version, self.job.where, self.job.thinning
        if version is None and where is None and thinning is None:
            return batch.rows, numbers
        mask = np.ones(len(numbers), bool) if where is None else where.mask(batch.rows)
        if thinning is not None:
            mask = thinning.mask(batch.rows, self.job.slices[batch.slice_index], batch.first_row, mask)
        if version is not None:
            mask = mask & rows_of(
                self._column(batch.rows, version.column), version.column, version.version, version.meant
            )
        return batch.rows.filter(pa.array(mask)), numbers[mask]

    def _beside(
        self, first: int, rows: pa.RecordBatch, slices: NDArray[np.int32], numbers: NDArray[np.int64]
    ) -> Beside:
        columns = self.job.columns
        ids = _places(self.job, slices, numbers) if columns.id is None else self._column(rows, columns.id)
        unreadable = dict(self.unreadable)
        self.unreadable.clear()
        return Beside(
            first,
            slices,
            numbers,
            ids,
            None if columns.prediction is None else self._column(rows, columns.prediction),
            self._span(rows),
            self._sample(first, rows),
            rows.select([name for name in self._wanted if name in rows.schema.names]),
            unreadable,
        )

    def _span(self, rows: pa.RecordBatch) -> Span:
        name = self.job.columns.timestamp
        return Span() if name is None else Span.of(self._column(rows, name), name, self.job.in_time)

    @property
    def _wanted(self) -> list[str]:
        of_variables = [name for head in self.job.variables.values() for name in head.columns]
        return list(dict.fromkeys((*of_variables, *(cut.name for cut in self.job.cuts))))

    def _column(self, rows: pa.RecordBatch, name: str) -> pa.Array:
        index = rows.schema.get_field_index(name)
        if index < 0:
            raise SourceError(
                f"the inputs have no column {name!r}; they have: {', '.join(rows.schema.names)}. "
                f"Correct 'columns' of monitor {self.job.monitor!r}."
            )
        return rows.column(index)

    def _sample(self, first: int, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        """The rows that are sampled, with their columns that hold one number, word or truth value each."""
        low, high = np.searchsorted(self.job.sampled, [first, first + rows.num_rows])
        if low == high:
            return None
        names = [
            name
            for name, kind in zip(rows.schema.names, rows.schema.types, strict=True)
            if name not in self.job.not_sampled and _is_scalar(kind)
        ]
        return rows.select(names).take(pa.array(self.job.sampled[low:high] - first))


def _places(job: ScoreJob, slices: NDArray[np.int32], numbers: NDArray[np.int64]) -> pa.Array:
    """An id for each input of a log without ids: where it stands."""
    indices, inverse = np.unique(slices, return_inverse=True)
    named = pa.array([f"{job.slices[index].part}#{job.slices[index].start}+" for index in indices.tolist()])
    return pc.binary_join_element_wise(named.take(pa.array(inverse)), pc.cast(pa.array(numbers), pa.string()), "")


def _is_scalar(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_dictionary(kind)
    )
