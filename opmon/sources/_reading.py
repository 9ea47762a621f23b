"""Reading slices: their files with one schema, and what of them cannot be read counted in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from opmon.errors import SourceError
from opmon.sources._ahead import mapped
from opmon.sources._damage import Damaged, Lost, stopping
from opmon.sources._folder import Place
from opmon.sources._format import Format, Piece
from opmon.sources._partitions import placed
from opmon.sources._position import parse
from opmon.sources._runs import Opened, add_columns, held, read_together, runs
from opmon.sources._schema import Columns
from opmon.sources._stored import StoredFolder
from opmon.stores import AT_ONCE
from opmon.types import Batch, Slice

if TYPE_CHECKING:
    import pyarrow as pa

_KEPT_BYTES = 64 << 20


@dataclass
class Reading:
    """One reading of some slices; ``stops``: damage is raised, otherwise what is damaged is left out and counted."""

    folder: Place
    form_of: Callable[[str], Format]
    columns: Columns
    stops: bool
    slices: Sequence[Slice]
    lost: dict[str, SourceError] = field(default_factory=dict)
    """The files that are damaged as a whole."""
    kept: list[Opened] = field(default_factory=list)
    """What need not be opened again: small files that hold one slice each."""

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of the files as far as the slices reach."""
        stops = {piece.part: piece.stop for piece in self.slices}
        firsts = list({piece.part: piece for piece in reversed(self.slices)}.values())[::-1]
        room = _KEPT_BYTES if len(firsts) == len(self.slices) else 0

        def opened() -> Iterator[Opened]:
            left = room
            for one in self._opened([replace(first, stop=stops[first.part]) for first in firsts]):
                left -= one.piece.entry.size
                if left >= 0 and one.piece.entry.content is not None:
                    self.kept.append(one)
                yield one

        add_columns(self.columns, opened(), self.stops, self._lose)
        if self.lost and len(self.lost) == len(firsts):
            raise next(iter(self.lost.values()))
        return self.columns.schema(columns)

    def batches(self, schema: pa.Schema, numbers: Sequence[int] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order; at the end of each, or of all, how many were left out and why.

        ``numbers``: of these slices alone.
        """
        of_folders = self.columns.of_folders
        for batch in self._batches(schema, numbers):
            if not of_folders:
                yield batch
                continue
            rows = placed(batch.rows, self.slices[batch.slice_index].part, of_folders)
            yield batch if rows is batch.rows else replace(batch, rows=rows)

    def _batches(self, schema: pa.Schema, numbers: Sequence[int] | None) -> Iterator[Batch]:
        if numbers is not None:
            yield from self._some(schema, numbers)
            return
        kept = [one for one in self.kept if one.slice.part not in self.lost]
        given: set[int] = set()
        all_kept = len(kept) + len(self.lost) == len(self.slices)
        for run in runs(iter(kept) if all_kept else self._opened(self.slices)):
            given |= {one.index for one in run}
            together = read_together(run, schema) if len(run) > 1 and len(schema) else None
            if together is not None:
                yield from together
                continue
            for one in run:
                yield from self._batches_of(one, schema)
        for index, piece in enumerate(self.slices):
            if index not in given:
                yield _without_rows(index, piece.rows, schema, str(self.lost[piece.part]), piece.rows)

    def _some(self, schema: pa.Schema, numbers: Sequence[int]) -> Iterator[Batch]:
        for index in numbers:
            piece = self.slices[index]
            opened = () if piece.part in self.lost else [*self._opened([piece])]
            for one in opened:
                yield from self._batches_of(replace(one, index=index), schema)
            if not opened:
                yield _without_rows(index, piece.rows, schema, str(self.lost[piece.part]), piece.rows)

    def open(self, index: int) -> Opened:
        """Slice number ``index``, of a file that is still the one in which it was found."""
        return self._open(index, self.slices[index])

    def _opened(self, slices: Sequence[Slice]) -> Iterator[Opened]:
        wanted = [(index, piece) for index, piece in enumerate(slices) if piece.part not in self.lost]
        if len(wanted) > 1 and isinstance(self.folder, StoredFolder):
            tried: Iterator[Opened | tuple[str, SourceError]] = mapped(self._tried, wanted, AT_ONCE)
        else:
            tried = map(self._tried, wanted)
        for one in tried:
            if isinstance(one, Opened):
                yield one
            else:
                self._lose(*one)

    def _tried(self, wanted: tuple[int, Slice]) -> Opened | tuple[str, SourceError]:
        """A slice of a file that was opened; or which file cannot be, and why."""
        try:
            return self._open(*wanted)
        except SourceError as exc:
            return wanted[1].part, exc

    def _open(self, index: int, piece: Slice) -> Opened:
        entry, form = held(self.folder.entry(piece.part)), self.form_of(piece.part)
        stop = parse(piece.stop, piece.part)
        form.verify(entry, stop)
        return Opened(index, piece, form, Piece(entry, parse(piece.start, piece.part), stop))

    def _lose(self, part: str, problem: SourceError) -> None:
        """Note that a file is damaged; raises where that stops the round, and what may pass."""
        if self.stops or not isinstance(problem, Damaged):
            raise stopping(problem) if self.stops else problem
        self.lost[part] = problem

    def _batches_of(self, one: Opened, schema: pa.Schema) -> Iterator[Batch]:
        at, gone, reason = 0, 0, ""
        for found in self._found(one, schema):
            if isinstance(found, Lost):
                reason = reason or found.why()
                if self.stops:
                    raise stopping(Damaged(reason))
                rows = found.rows or one.slice.rows - at
                at, gone = at + rows, gone + rows
                continue
            yield Batch(one.index, at, found)
            at += found.num_rows
        if at != one.slice.rows:
            raise SourceError(
                f"{one.slice.part} gave {at} rows between two positions that held {one.slice.rows} when the round "
                f"was opened: it was changed. Put back the file that was there."
            )
        if gone:
            yield _without_rows(one.index, at, schema, reason, gone)

    def _found(self, one: Opened, schema: pa.Schema) -> Iterator[pa.RecordBatch | Lost]:
        try:
            yield from one.form.batches(one.piece, schema)
        except Damaged as exc:
            yield Lost.because(0, str(exc))  # all that is left of the slice


def _without_rows(index: int, at: int, schema: pa.Schema, reason: str, gone: int) -> Batch:
    import pyarrow as pa

    columns = [pa.array([], field.type) for field in schema]
    return Batch(index, at, pa.record_batch(columns, schema=schema), {reason: gone})
