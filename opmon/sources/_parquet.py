"""Parquet files: positions are row numbers, the footer tells whether the file is whole and still the same."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from opmon.errors import SourceError
from opmon.sources._damage import Damaged, Lost, not_readable, rewritten
from opmon.sources._folder import Entry
from opmon.sources._format import Head, Piece, Span
from opmon.sources._outlines import Outline, Outlines
from opmon.sources._position import Position, checksum
from opmon.sources._salvage import Flaw, Salvage
from opmon.sources._schema import conform
from opmon.sources._stored import StoredFile
from opmon.wording import lasted

_ERRORS = (pa.ArrowException, OSError, ValueError)
"""What Arrow raises for files that are damaged; ValueError for names that are not UTF-8."""

_BATCH_BYTES, _BATCH_ROWS = 16 << 20, 65_536
_SMALL_BYTES = 1 << 18
_AT_ONCE_BYTES, _AT_ONCE_ROWS = 2 * _BATCH_BYTES, 2 * _BATCH_ROWS
"""A row group of at most so much is decoded at once, its columns side by side on all cores: batch by batch takes a
fifth more work, all of it on one core."""


@dataclass(frozen=True, slots=True)
class Parquet:
    """A file is written once: it waits until its footer is there, and it may not change once it was read."""

    stale_seconds: float
    strong: ClassVar[bool] = True

    def count(self, entry: Entry, start: Position, limit: int | None, age: float) -> Span | None:
        footer = footer_of(entry)
        if footer is None:
            if start.started:
                raise rewritten(entry.part, "the file has lost its Parquet footer after rows of it were read")
            if age <= self.stale_seconds:
                return None  # being written
            raise Damaged(
                f"{entry.part} is not a whole Parquet file ({entry.size} bytes, no footer), and was not written to for "
                f"{lasted(age)}. Write it again, or remove it."
            )
        if start.started and footer != start.check:
            raise rewritten(entry.part, "the Parquet file was written again after rows of it were read")
        whole = _outline(entry, footer).rows
        rows = whole - start.at if limit is None else min(limit, whole - start.at)
        return Span(Position(start.at + rows, whole, entry.size, entry.modified_ns, footer), rows)

    def verify(self, entry: Entry, position: Position) -> None:
        if footer_of(entry) != position.check:
            raise rewritten(entry.part, "the Parquet file was written again after rows of it were read")

    @property
    def joining(self) -> None:
        return None

    def head(self, piece: Piece, mixed: bool = True) -> Head:
        schema = _outline(piece.entry, piece.stop.check).schema
        twice = [name for name, times in Counter(schema.names).items() if times > 1]
        if twice:
            raise Damaged(f"{piece.entry.part} has the column {twice[0]!r} more than once; rename one of them")
        return Head(schema)

    def batches(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch | Lost]:
        entry, stop = piece.entry, piece.stop.at
        at, salvage = piece.start.at, Salvage()
        with _open(entry) as file:
            for group in file.groups:
                end = min(group.end, stop)
                try:
                    for rows in _decoded(entry, file, group, schema, at, end) if at < end else ():
                        yield from _conformed(entry, rows, schema, salvage)
                        at += rows.num_rows
                except Damaged as exc:
                    yield Lost.because(end - at, str(exc))
                    at = end
        if at < stop:
            raise Damaged(f"{entry.part} has {stop - at} rows less than its footer says; write it again")

    def take(self, piece: Piece, rows: Sequence[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        entry = piece.entry
        with _open(entry) as file:
            wanted = [piece.start.at + row for row in rows]
            for group in file.groups:
                here = [row for row in wanted if group.first <= row < group.end]
                seen = group.first
                for batch in _decoded(entry, file, group, schema, seen, here[-1] + 1) if here else ():
                    inside = [row - seen for row in here if seen <= row < seen + batch.num_rows]
                    seen += batch.num_rows
                    if inside:
                        yield _fitted(entry, batch.take(pa.array(inside, pa.int64())), schema)


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group: rows ``first`` to ``end`` of the file."""

    number: int
    first: int
    end: int
    size: int


@dataclass(frozen=True, slots=True)
class _File:
    """A file whose footer was read and makes sense."""

    file: pq.ParquetFile
    schema: pa.Schema
    groups: Sequence[_Group]
    rows: int


_outlines = Outlines()


def _outline(entry: Entry, footer: str) -> Outline:
    """The outline of a file with that checksum of its footer."""
    key = entry.part, entry.size, footer
    known = _outlines.find(key)
    if known is not None:
        return known
    with _open(entry) as file:
        return _outlines.put(key, Outline(file.schema, file.rows))


@contextmanager
def _open(entry: Entry) -> Iterator[_File]:
    try:
        stored = isinstance(entry.path, StoredFile)  # each column of a row group would be a request of its own
        whole = entry.path if entry.content is None else pa.BufferReader(entry.content)
        content, buffer = (entry.open(), 0) if stored and entry.content is None else (whole, 1 << 20)
        file = pq.ParquetFile(content, pre_buffer=stored, buffer_size=buffer, page_checksum_verification=True)
        opened = _File(file, file.schema_arrow.remove_metadata(), _groups(file.metadata), file.metadata.num_rows)
    except _ERRORS as exc:
        message = f"{entry.part} cannot be read as Parquet: {str(exc).strip()}. Write it again, or remove it."
        raise not_readable(message, exc) from exc
    with file:
        if sum(group.end - group.first for group in opened.groups) != opened.rows:
            raise Damaged(f"{entry.part} has a footer that contradicts itself. Write the file again, or remove it.")
        yield opened


def _groups(metadata: pq.FileMetaData) -> list[_Group]:
    groups: list[_Group] = []
    first = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        groups.append(_Group(number, first, first + group.num_rows, group.total_byte_size))
        first += group.num_rows
    return groups


def _decoded(
    entry: Entry, file: _File, group: _Group, schema: pa.Schema, start: int, stop: int
) -> Iterator[pa.RecordBatch]:
    """Rows ``start`` to ``stop`` of a row group with those columns there are, in batches of bounded size.

    The batches are the same whatever rows of the group are asked for: where one of them is damaged, those before it can
    always be had. A batch without columns still has its number of rows.
    """
    have = set(file.schema.names)
    names, at = [name for name in schema.names if name in have], group.first
    try:
        for batch in _whole(file.file, group, names):
            piece = batch.slice(max(0, start - at), max(0, stop - max(at, start)))
            at += batch.num_rows
            if piece.num_rows:
                yield piece
            if at >= stop:
                return
    except _ERRORS as exc:
        raise not_readable(
            f"{entry.part} cannot be read: {str(exc).strip()}. If it is damaged, write it again.", exc
        ) from exc


def _whole(file: pq.ParquetFile, group: _Group, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    rows = group.end - group.first
    batch_rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * rows // max(group.size, 1)))
    if names and group.size <= _AT_ONCE_BYTES and rows <= _AT_ONCE_ROWS:
        decoded = None
        with suppress(*_ERRORS):  # of a damaged group what lies before the damage can be had, batch by batch
            table = file.read_row_group(group.number, names, use_threads=group.size > _SMALL_BYTES)
            decoded = table.combine_chunks().to_batches(batch_rows)
        if decoded is not None:
            yield from decoded
            return
    yield from file.iter_batches(batch_size=batch_rows, row_groups=[group.number], columns=list(names))


def _conformed(
    entry: Entry, batch: pa.RecordBatch, schema: pa.Schema, salvage: Salvage
) -> Iterator[pa.RecordBatch | Lost]:
    """The batch with the columns of ``schema``; row by row where that fails."""

    def fitted(rows: Sequence[int]) -> pa.RecordBatch:
        return conform(batch.slice(rows[0], len(rows)), schema)

    try:
        whole = conform(batch, schema)
    except ValueError:
        pass
    else:
        salvage.good += batch.num_rows
        yield whole
        return
    for found in salvage.parsed(range(batch.num_rows), fitted, {}, batch.num_rows):
        yield Lost.because(1, f"{entry.part}: {found.reason}") if isinstance(found, Flaw) else found


def _fitted(entry: Entry, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return conform(batch, schema)
    except ValueError as exc:
        raise Damaged(f"{entry.part}: {exc}") from exc


def footer_of(entry: Entry) -> str | None:
    """The checksum of the footer, or None where there is none: the file is not whole, or not Parquet."""
    try:
        with entry.open() as stream:
            size = stream.seek(0, 2)
            if size < 12:
                return None
            stream.seek(size - 8)
            length, magic = struct.unpack("<I4s", stream.read(8))
            if magic == b"PARE":
                raise Damaged(f"{entry.part} is an encrypted Parquet file; opmon reads plain ones")
            if magic != b"PAR1" or length > size - 12:
                return None
            stream.seek(size - 8 - length)
            return checksum(stream.read(length))
    except OSError as exc:
        raise SourceError(f"{entry.part} cannot be opened: {exc.strerror or exc}") from exc
