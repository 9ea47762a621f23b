"""Parquet files: positions are row numbers, the footer tells whether the file is whole and still the same."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from opmon.errors import SourceError
from opmon.sources._folder import Entry
from opmon.sources._format import Span
from opmon.sources._position import Position, checksum, rewritten
from opmon.sources._schema import conform

_BATCH_BYTES, _BATCH_ROWS = 4 << 20, 65_536


@dataclass(frozen=True, slots=True)
class Parquet:
    """A file is written once: it waits until its footer is there, and it may not change once it was read."""

    stale_seconds: float
    strong: ClassVar[bool] = True

    def count(self, entry: Entry, start: Position, limit: int | None, age: float) -> Span | None:
        footer = _footer(entry)
        if footer is None:
            if start.started:
                raise rewritten(entry.part, "the file has lost its Parquet footer after rows of it were read")
            if age <= self.stale_seconds:
                return None  # being written
            raise SourceError(
                f"{entry.part} is not a whole Parquet file ({entry.size} bytes, no footer), and was not written to for "
                f"{age:.0f} s. Write it again, or remove it."
            )
        if start.started and footer != start.check:
            raise rewritten(entry.part, "the Parquet file was written again after rows of it were read")
        with _open(entry) as file:
            whole = file.metadata.num_rows
        rows = whole - start.at if limit is None else min(limit, whole - start.at)
        return Span(Position(start.at + rows, whole, entry.size, entry.modified_ns, footer), rows)

    def verify(self, entry: Entry, position: Position) -> None:
        if _footer(entry) != position.check:
            raise rewritten(entry.part, "the Parquet file was written again after rows of it were read")

    def schema(self, entry: Entry, stop: Position) -> pa.Schema:
        with _open(entry) as file:
            schema = file.schema_arrow.remove_metadata()
        twice = {name for name in schema.names if schema.names.count(name) > 1}
        if twice:
            raise SourceError(f"{entry.part} has the column {sorted(twice)[0]!r} more than once; rename one of them")
        return schema

    def batches(self, entry: Entry, start: Position, stop: Position, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _open(entry) as file:
            groups, first = _row_groups(file.metadata, start.at, stop.at)
            have = set(file.schema_arrow.names)
            names = [name for name in schema.names if name in have]
            skip, left = start.at - first, stop.at - start.at
            for batch in _decoded(entry, file, groups, names):
                piece = batch.slice(skip, left)
                skip = max(0, skip - batch.num_rows)
                if piece.num_rows:
                    left -= piece.num_rows
                    yield conform(piece, schema, entry.part)
                if not left:
                    return
        raise SourceError(f"{entry.part} has {left} rows less than its footer says; it is damaged: write it again")

    def take(
        self, entry: Entry, start: Position, stop: Position, rows: Sequence[int], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        with _open(entry) as file:
            metadata, wanted = file.metadata, [start.at + row for row in rows]
            have = set(file.schema_arrow.names)
            names = [name for name in schema.names if name in have]
            first = 0
            for group in range(metadata.num_row_groups):
                after = first + metadata.row_group(group).num_rows
                here = [row - first for row in wanted if first <= row < after]
                seen = 0
                for batch in _decoded(entry, file, [group], names) if here else ():
                    inside = [row - seen for row in here if seen <= row < seen + batch.num_rows]
                    seen += batch.num_rows
                    if inside:
                        yield conform(batch.take(pa.array(inside, pa.int64())), schema, entry.part)
                    if seen > here[-1]:
                        break
                first = after


def _decoded(entry: Entry, file: Any, groups: Sequence[int], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The row groups, in batches of bounded size; a batch without columns still has its number of rows."""
    size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
    rows = sum(file.metadata.row_group(group).num_rows for group in groups)
    batch_rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * max(rows, 1) // max(size, 1)))
    try:
        yield from file.iter_batches(batch_size=batch_rows, row_groups=list(groups), columns=list(names))
    except (pa.ArrowException, OSError) as exc:
        raise SourceError(f"{entry.part} cannot be read: {exc}. If it is damaged, write it again.") from exc


def _row_groups(metadata: Any, start: int, stop: int) -> tuple[list[int], int]:
    """The row groups that hold rows ``start`` to ``stop``, and the number of the first row in them."""
    groups: list[int] = []
    first = before = 0
    for group in range(metadata.num_row_groups):
        after = before + metadata.row_group(group).num_rows
        if before < stop and after > start:
            if not groups:
                first = before
            groups.append(group)
        before = after
    return groups, first


def _open(entry: Entry) -> Any:
    try:
        return pq.ParquetFile(entry.path, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as exc:
        raise SourceError(f"{entry.part} cannot be read as Parquet: {exc}. Write it again, or remove it.") from exc


def _footer(entry: Entry) -> str | None:
    """The checksum of the footer, or None where there is none: the file is not whole, or not Parquet."""
    try:
        with entry.path.open("rb") as stream:
            size = stream.seek(0, 2)
            if size < 12:
                return None
            stream.seek(size - 8)
            length, magic = struct.unpack("<I4s", stream.read(8))
            if magic == b"PARE":
                raise SourceError(f"{entry.part} is an encrypted Parquet file; opmon reads plain ones")
            if magic != b"PAR1" or length > size - 12:
                return None
            stream.seek(size - 8 - length)
            return checksum(stream.read(length))
    except OSError as exc:
        raise SourceError(f"{entry.part} cannot be opened: {exc.strerror or exc}") from exc
