"""Folders of pictures: each file is one row, with its path, its bytes and when it was written."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import pyarrow as pa

from opmon.sources._damage import Damaged, Lost, not_readable, rewritten
from opmon.sources._folder import Entry
from opmon.sources._format import Head, Piece, Span
from opmon.sources._position import Position, checksum
from opmon.sources._schema import conform

SCHEMA = pa.schema([("file", pa.string()), ("image", pa.binary()), ("modified", pa.timestamp("us", "UTC"))])
LARGEST = 64 << 20
"""The most bytes of one picture."""
_ENDS = 64
_FINISHED = ((b"\x89PNG\r\n\x1a\n", b"IEND"), (b"\xff\xd8\xff", b"\xff\xd9"))
"""How a picture of a kind begins, and what stands at its end once it is whole. Other kinds do not tell it alike."""
_TOGETHER = b"\0pictures\0"
_LENGTHS = struct.Struct("<QQq")


@dataclass(frozen=True, slots=True)
class Pictures:
    """A picture is written once: it waits until its end is there, or where its kind has no mark of that until it was
    left alone for ``settle_seconds``. It may not change once it was read.

    Phones put videos behind pictures: the mark may stand before the end of one that nobody writes to any more.
    """

    settle_seconds: float
    stale_seconds: float
    strong: ClassVar[bool] = True

    def count(self, entry: Entry, start: Position, limit: int | None, age: float) -> Span | None:
        if start.started:
            self.verify(entry, start)
            return Span(replace(start, size=entry.size, modified_ns=entry.modified_ns), 0)
        begin, end = _ends(entry)
        if not self._is_whole(entry, begin, end, age):
            if age <= self.stale_seconds:
                return None  # being written
            raise Damaged(f"{entry.part} is no whole picture ({entry.size:,} bytes). Write it again, or remove it.")
        if entry.size > LARGEST:
            raise Damaged(f"{entry.part} has {entry.size:,} bytes, and a picture {LARGEST:,} at most")
        return Span(Position(1, 1, entry.size, entry.modified_ns, checksum(begin, end)), 1)

    def verify(self, entry: Entry, position: Position) -> None:
        if checksum(*_ends(entry)) != position.check:
            raise rewritten(entry.part, "the picture was written again after it was read")

    @property
    def joining(self) -> Self:
        return self

    def kind(self, entry: Entry) -> bytes | None:
        return None if entry.content is None else _TOGETHER

    def joined(self, pieces: Sequence[Piece]) -> Piece:
        content = _TOGETHER + b"".join(_packed(piece.entry) for piece in pieces)
        first = pieces[0].entry
        return Piece(replace(first, content=content, size=len(content)), Position(), Position(len(pieces)))

    def head(self, piece: Piece, mixed: bool = True) -> Head:
        return Head(SCHEMA)

    def batches(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch | Lost]:
        rows = list(_rows(piece.entry))
        columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
        yield conform(pa.record_batch(columns, schema=SCHEMA), schema)

    def take(self, piece: Piece, rows: Sequence[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self.batches(piece, schema):
            assert isinstance(batch, pa.RecordBatch)
            yield batch.take(pa.array(list(rows), pa.int64()))

    def _is_whole(self, entry: Entry, begin: bytes, end: bytes, age: float) -> bool:
        finish = next((finish for start, finish in _FINISHED if begin.startswith(start)), None)
        if finish is None:
            return bool(begin) and age > self.settle_seconds
        return finish in end or (age > self.stale_seconds and finish in _content(entry))


def _ends(entry: Entry) -> tuple[bytes, bytes]:
    """The first bytes of a file, and the last ones."""
    try:
        with entry.open() as stream:
            begin = stream.read(_ENDS)
            stream.seek(max(0, entry.size - _ENDS))
            return begin, stream.read(_ENDS)
    except OSError as exc:
        raise not_readable(f"{entry.part} cannot be read: {exc.strerror or exc}", exc) from exc


def _rows(entry: Entry) -> Iterator[tuple[str, bytes, int]]:
    """Path, bytes and time of the picture, or of those that were joined."""
    content = entry.content
    if content is None or not content.startswith(_TOGETHER):
        yield entry.part, _content(entry), entry.modified_ns // 1000
        return
    at = len(_TOGETHER)
    while at < len(content):
        name, size, modified = _LENGTHS.unpack_from(content, at)
        at += _LENGTHS.size
        yield content[at : at + name].decode(), content[at + name : at + name + size], modified
        at += name + size


def _packed(entry: Entry) -> bytes:
    name, content = entry.part.encode(), _content(entry)
    return _LENGTHS.pack(len(name), len(content), entry.modified_ns // 1000) + name + content


def _content(entry: Entry) -> bytes:
    if entry.content is not None:
        return entry.content
    try:
        with entry.open() as stream:
            return stream.read(LARGEST)
    except OSError as exc:
        raise not_readable(f"{entry.part} cannot be read: {exc.strerror or exc}", exc) from exc
