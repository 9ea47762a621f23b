"""What CSV and JSONL have in common: positions are byte offsets, so a file that grows goes on where it stopped."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import pyarrow as pa

from opmon.errors import SourceError
from opmon.sources._folder import Entry
from opmon.sources._format import Span
from opmon.sources._lines import Block, Lines, line_number, read_range
from opmon.sources._position import Position, checksum, rewritten

HEAD_BYTES = 1 << 20
_CHECK_BYTES = 64
Parsed = TypeVar("Parsed")


class Parser(Protocol):
    """Makes a table of the bytes of whole rows; raises pa.ArrowInvalid or ValueError where it cannot."""

    def lines(self, entry: Entry) -> Lines: ...

    def begin(self, entry: Entry) -> int | None:
        """Where the first row starts, after a header; None while the header is not whole."""
        ...

    def infer(self, entry: Entry, data: bytes) -> pa.Schema: ...

    def parse(self, entry: Entry, data: bytes, schema: pa.Schema) -> pa.RecordBatch: ...


@dataclass(frozen=True, slots=True)
class Text:
    """Rows of text. A last row without a newline waits until the file was left alone for ``settle_seconds``."""

    parser: Parser
    settle_seconds: float
    stale_seconds: float
    strong: ClassVar[bool] = False

    def count(self, entry: Entry, start: Position, limit: int | None, age: float) -> Span | None:
        packed = entry.path.suffix.lower() == ".gz"
        if start.started:
            self.verify(entry, start)
            self._require_row_start(entry, start)
        begin = start.at if start.started else self.parser.begin(entry)
        if begin is None:
            if age > self.stale_seconds and b"\r" in read_range(entry, 0, HEAD_BYTES):
                raise SourceError(f"{entry.part} ends its lines with a carriage return alone; write newlines")
            return None
        stop_at = None if packed else entry.size
        at, rows, reached_end = begin, 0, True
        try:
            for block in self.parser.lines(entry).blocks(entry, begin, stop_at, take_tail=age > self.settle_seconds):
                room = len(block.ends) if limit is None else limit - rows
                if room < len(block.ends):
                    at, rows, reached_end = block.offset + int(block.ends[room - 1]), rows + room, False
                    break
                at, rows = block.consumed, rows + len(block.ends)
                if rows == limit:
                    reached_end = at == stop_at
                    break
        except SourceError:
            if packed and age <= self.stale_seconds:
                return None  # being written: the end of the gzip stream is not there yet
            raise
        if not packed and age > self.stale_seconds and reached_end and at < entry.size:
            self._require_blank(entry, at)
        whole = (at if reached_end else None) if packed else entry.size
        return Span(Position(at, whole, entry.size, entry.modified_ns, _check(entry, at)), rows)

    def verify(self, entry: Entry, position: Position) -> None:
        if entry.path.suffix.lower() != ".gz":
            if entry.size < position.at:
                raise rewritten(
                    entry.part, f"the file shrank to {entry.size} bytes after {position.at} bytes were read"
                )
        elif entry.size < position.size:
            raise rewritten(entry.part, f"the file shrank from {position.size} to {entry.size} bytes")
        if _check(entry, position.at) != position.check:
            raise rewritten(entry.part, f"the file was rewritten after {position.at} bytes of it were read")

    def schema(self, entry: Entry, stop: Position) -> pa.Schema:
        begin = self.parser.begin(entry)
        blocks = self.parser.lines(entry).blocks(entry, begin or 0, stop.at, take_tail=True)
        head = next((block for block in blocks if len(block.ends)), None)
        if head is None:
            return pa.schema([])
        rows = max(1, bisect.bisect_right(head.ends, HEAD_BYTES))
        return self._parsed(entry, head, range(rows), lambda data, _: self.parser.infer(entry, data))

    def batches(self, entry: Entry, start: Position, stop: Position, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for block in self._blocks(entry, start, stop):
            if len(block.ends):
                yield self._batch(entry, block, range(len(block.ends)), schema)

    def take(
        self, entry: Entry, start: Position, stop: Position, rows: Sequence[int], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        first = 0
        for block in self._blocks(entry, start, stop):
            after = first + len(block.ends)
            inside = [row - first for row in rows if first <= row < after]
            if inside:
                yield self._batch(entry, block, inside, schema)
            first = after
            if first > rows[-1]:
                return

    def _blocks(self, entry: Entry, start: Position, stop: Position) -> Iterator[Block]:
        begin = start.at if start.started else self.parser.begin(entry)
        return self.parser.lines(entry).blocks(entry, begin or 0, stop.at, take_tail=True)

    def _batch(self, entry: Entry, block: Block, rows: Sequence[int], schema: pa.Schema) -> pa.RecordBatch:
        def parse(data: bytes, expected: int) -> pa.RecordBatch:
            batch = self.parser.parse(entry, data, schema)
            if batch.num_rows != expected:
                raise ValueError(f"{batch.num_rows} rows instead of {expected}; is there a lone carriage return?")
            return batch

        return self._parsed(entry, block, rows, parse)

    def _parsed(self, entry: Entry, block: Block, rows: Sequence[int], parse: Callable[[bytes, int], Parsed]) -> Parsed:
        """What ``parse`` makes of the rows; where it cannot, the error names the first line that is at fault."""
        try:
            return parse(_joined(block, rows), len(rows))
        except (pa.ArrowException, ValueError) as exc:
            row, reason = _fault(block, rows, parse) or (rows[0], str(exc))
            line = line_number(entry, block.offset + int(block.starts[row]))
            raise SourceError(f"{entry.part}, line {line}: {reason}") from exc

    def _require_row_start(self, entry: Entry, start: Position) -> None:
        around = read_range(entry, start.at - 1, start.at + 1)
        if len(around) == 2 and around[0:1] != b"\n" and around[1:2] not in (b"\n", b"\r"):
            raise SourceError(
                f"{entry.part}, line {line_number(entry, start.at)}: the row was read without a newline after "
                f"{self.settle_seconds:g} s of silence, and then went on. Raise settle_seconds, or write whole rows."
            )

    def _require_blank(self, entry: Entry, at: int) -> None:
        if read_range(entry, at, min(entry.size, at + _CHECK_BYTES)).strip():
            raise SourceError(
                f"{entry.part}, line {line_number(entry, at)}: the last row is not whole (a quote is not closed), and "
                f"the file was not written to for {self.stale_seconds:.0f} s or more. Complete the row or remove it."
            )


def _fault(block: Block, rows: Sequence[int], parse: Callable[[bytes, int], object]) -> tuple[int, str] | None:
    """The first row that cannot be parsed, and why: the shortest run of rows that fails ends with it."""

    def reason(count: int) -> str | None:
        try:
            parse(_joined(block, rows[:count]), count)
        except (pa.ArrowException, ValueError) as exc:
            return str(exc)
        return None

    good, bad = 0, len(rows)
    if reason(bad) is None:
        return None
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if reason(middle) is not None else (middle, bad)
    return rows[bad - 1], _alone(block, rows[bad - 1], parse) or str(reason(bad))


def _alone(block: Block, row: int, parse: Callable[[bytes, int], object]) -> str | None:
    """What is wrong with a row by itself: the message has no row numbers that mislead."""
    try:
        parse(_joined(block, [row]), 1)
    except (pa.ArrowException, ValueError) as exc:
        return str(exc)
    return None


def _joined(block: Block, rows: Sequence[int]) -> bytes:
    if len(rows) == len(block.ends):
        return block.data
    if isinstance(rows, range):
        return block.data[int(block.starts[rows[0]]) : int(block.ends[rows[-1]])]
    pieces = (block.data[int(block.starts[row]) : int(block.ends[row])] for row in rows)
    return b"".join(piece if piece.endswith(b"\n") else piece + b"\n" for piece in pieces)


def _check(entry: Entry, at: int) -> str:
    """The checksum of the file's first bytes and of the last ones before ``at``."""
    first = read_range(entry, 0, min(at, _CHECK_BYTES))
    return checksum(first, read_range(entry, max(0, at - _CHECK_BYTES), at))
