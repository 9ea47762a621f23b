"""What CSV and JSONL have in common: positions are byte offsets, so a file that grows goes on where it stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self, TypeVar

import pyarrow as pa

from opmon.sources._ahead import mapped
from opmon.sources._damage import CutShort, Damaged, Lost, rewritten
from opmon.sources._folder import Entry
from opmon.sources._format import Head, Piece, Span
from opmon.sources._lines import BLOCK_BYTES, Block, Lines, first_rows, is_packed, line_number, read_range, read_ranges
from opmon.sources._position import Position, checksum
from opmon.sources._salvage import Flaw, Salvage
from opmon.sources._schema import leaves

Done = TypeVar("Done")
HEAD_BYTES = 1 << 20
_ROW_BYTES = 1 << 16
"""Read with the head, so that the row across its end is whole as a rule."""
_CHECK_BYTES = 64
_PARSERS = min(8, 2 * (os.cpu_count() or 1))
"""So many blocks are parsed side by side, or wait to be taken."""
_CELLS = 1 << 24
"""A table of rows is made of so many cells at the most: JSON may name many columns and fill few."""


class Parser(Protocol):
    """Makes a table of the bytes of whole rows; raises pa.ArrowException or ValueError where it cannot."""

    def lines(self, entry: Entry) -> Lines: ...

    def header(self, entry: Entry) -> bytes | None:
        """The bytes before the first row; None while the header is not whole."""
        ...

    def flaws(self, block: Block) -> Mapping[int, str]:
        """The rows that must not be given to the parser, and why."""
        ...

    def infer(self, entry: Entry, data: bytes, mixed: bool) -> pa.Schema:
        """The types of the rows; ``mixed``: a column that holds different kinds of values is text."""
        ...

    def parse(self, entry: Entry, data: bytes, schema: pa.Schema) -> pa.RecordBatch: ...


@dataclass(frozen=True, slots=True)
class Text:
    """Rows of text. A last row without a newline waits until the file was left alone for ``settle_seconds``."""

    parser: Parser
    settle_seconds: float
    stale_seconds: float
    strong: ClassVar[bool] = False

    def count(self, entry: Entry, start: Position, limit: int | None, age: float) -> Span | None:
        try:
            if start.started:
                self.verify(entry, start)
                self._require_row_start(entry, start)
            begin = start.at if start.started else self._begin(entry)
            if begin is not None:
                return self._counted(entry, begin, limit, age)
            if age > self.stale_seconds and b"\r" in read_range(entry, 0, HEAD_BYTES):
                raise Damaged(f"{entry.part} ends its lines with a carriage return alone; write newlines")
        except CutShort:
            if age > self.stale_seconds:
                raise
        return None  # being written: the header, or the end of the gzip stream, is not there yet

    def verify(self, entry: Entry, position: Position) -> None:
        if not is_packed(entry):
            if entry.size < position.at:
                raise rewritten(
                    entry.part, f"the file shrank to {entry.size} bytes after {position.at} bytes were read"
                )
        elif entry.size < position.size:
            raise rewritten(entry.part, f"the file shrank from {position.size} to {entry.size} bytes")
        if _check(entry, position.at) != position.check:
            raise rewritten(entry.part, f"the file was rewritten after {position.at} bytes of it were read")

    @property
    def joining(self) -> Self:
        return self

    def kind(self, entry: Entry) -> bytes | None:
        return None if entry.content is None or is_packed(entry) else self.parser.header(entry)

    def joined(self, pieces: Sequence[Piece]) -> Piece:
        first = pieces[0].entry
        header = self.parser.header(first) or b""
        rows = [_content(piece)[piece.start.at or len(header) : piece.stop.at] for piece in pieces]
        content = header + b"".join(some if some.endswith(b"\n") else some + b"\n" for some in rows)
        entry = replace(first, content=content, size=len(content))
        return Piece(entry, Position(len(header)), Position(len(content)))

    def head(self, piece: Piece, mixed: bool = True) -> Head:
        entry = piece.entry
        lines = replace(self.parser.lines(entry), block_bytes=HEAD_BYTES + _ROW_BYTES)
        blocks = lines.blocks(entry, self._begin(entry) or 0, piece.stop.at, take_tail=True)
        block = first_rows(blocks, HEAD_BYTES)
        if block is None:
            return Head(pa.schema([]))
        rows = range(max(1, int((block.ends <= HEAD_BYTES).sum())))

        def infer(some: Sequence[int]) -> pa.Schema:
            return self.parser.infer(entry, _joined(block, some), mixed)

        found = list(Salvage().parsed(rows, infer, self.parser.flaws(block), len(rows)))
        flawed = {flaw.row: flaw for flaw in found if isinstance(flaw, Flaw)}
        new = (flaw for flaw in flawed.values() if block.offset + int(block.starts[flaw.row]) >= piece.start.at)
        first = next(new, None)
        lost = None if first is None else _lost(entry, block, first)
        if not flawed and len(found) == 1:
            return Head(found[0])
        try:
            good = [row for row in rows if row not in flawed]
            return Head(infer(good) if good else pa.schema([]), lost)
        except (pa.ArrowException, ValueError) as exc:
            raise Damaged(f"{entry.part}: the first rows do not go together: {exc}") from exc

    def batches(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch | Lost]:
        salvage, blocks = Salvage(), self._blocks(piece)

        def tried(block: Block) -> _Tried:
            return self._tried(piece.entry, block, schema)

        for one in self._beside(piece.entry, blocks, tried):
            if one.rows is not None:
                salvage.good += one.rows.num_rows
                yield one.rows
                continue
            rows = range(len(one.block.ends))
            for found in self._parsed(piece.entry, one.block, rows, schema, salvage, one.flaws, one.failed):
                yield _lost(piece.entry, one.block, found) if isinstance(found, Flaw) else found

    def take(self, piece: Piece, rows: Sequence[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        first = 0
        for block in self._blocks(piece):
            after = first + len(block.ends)
            inside = [row - first for row in rows if first <= row < after]
            flaws = self.parser.flaws(block) if inside else {}
            for found in self._parsed(piece.entry, block, inside, schema, Salvage(), flaws):
                if isinstance(found, Flaw):
                    raise Damaged(_lost(piece.entry, block, found).why())
                yield found
            first = after
            if first > rows[-1]:
                return

    def _begin(self, entry: Entry) -> int | None:
        header = self.parser.header(entry)
        return None if header is None else len(header)

    def _blocks(self, piece: Piece) -> Iterator[Block]:
        begin = piece.start.at if piece.start.started else self._begin(piece.entry) or 0
        return self.parser.lines(piece.entry).blocks(piece.entry, begin, piece.stop.at, take_tail=True)

    def _counted(self, entry: Entry, begin: int, limit: int | None, age: float) -> Span:
        packed = is_packed(entry)
        stop_at = None if packed else entry.size
        at, rows, reached_end = begin, 0, True
        lost: Lost | None = None
        blocks = self.parser.lines(entry).blocks(entry, begin, stop_at, take_tail=age > self.settle_seconds)
        for block, flaws in self._beside(entry, blocks, lambda block: (block, self.parser.flaws(block))):
            room = len(block.ends) if limit is None else min(len(block.ends), limit - rows)
            lost = lost or _first_flaw(entry, block, flaws, room)
            rows += room
            if room < len(block.ends):
                at, reached_end = block.offset + int(block.ends[room - 1]), False
                break
            at = block.consumed
            if rows == limit:
                reached_end = at == stop_at
                break
        if not packed and age > self.stale_seconds and reached_end and at < entry.size:
            lost = lost or self._open_tail(entry, at)
        whole = (at if reached_end else None) if packed else entry.size
        return Span(Position(at, whole, entry.size, entry.modified_ns, _check(entry, at)), rows, lost)

    def _beside(self, entry: Entry, blocks: Iterator[Block], work: Callable[[Block], Done]) -> Iterator[Done]:
        """What ``work`` makes of the blocks, in order; of a large file several at once, while the next are cut."""
        return mapped(work, blocks, _PARSERS) if entry.size > BLOCK_BYTES else map(work, blocks)

    def _open_tail(self, entry: Entry, at: int) -> Lost | None:
        """What stands after the last whole row of a file that nobody writes to any more."""
        if not read_range(entry, at, min(entry.size, at + _CHECK_BYTES)).strip():
            return None
        return Lost(
            0,
            lambda: (
                f"{entry.part}, line {line_number(entry, at)}: the last row is not whole (a quote is not closed), and "
                f"the file was not written to for {self.stale_seconds:.0f} s or more. Complete the row or remove it."
            ),
        )

    def _parsed(
        self,
        entry: Entry,
        block: Block,
        rows: Sequence[int],
        schema: pa.Schema,
        salvage: Salvage,
        flaws: Mapping[int, str],
        failed: str | None = None,
    ) -> Iterator[pa.RecordBatch | Flaw]:
        """``failed``: why all rows of the block together cannot be parsed, where that is known."""

        def parse(some: Sequence[int]) -> pa.RecordBatch:
            if failed is not None and len(some) == len(block.ends):
                raise ValueError(failed)
            return self._whole(entry, block, some, schema)

        yield from salvage.parsed(rows, parse, flaws, _at_once(schema))

    def _tried(self, entry: Entry, block: Block, schema: pa.Schema) -> _Tried:
        """The rows of a block, parsed together where nothing is wrong with any of them; threads do several at once."""
        flaws, rows = self.parser.flaws(block), range(len(block.ends))
        if flaws or not 0 < len(rows) <= _at_once(schema):
            return _Tried(block, flaws)
        try:
            return _Tried(block, flaws, self._whole(entry, block, rows, schema))
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, ValueError) as exc:
            return _Tried(block, flaws, failed=str(exc))  # which of them it is takes trying again

    def _whole(self, entry: Entry, block: Block, rows: Sequence[int], schema: pa.Schema) -> pa.RecordBatch:
        batch = self.parser.parse(entry, _joined(block, rows), schema)
        if batch.num_rows != len(rows):
            raise ValueError(f"{batch.num_rows} rows instead of {len(rows)}; is there a lone carriage return?")
        return batch

    def _require_row_start(self, entry: Entry, start: Position) -> None:
        around = read_range(entry, start.at - 1, start.at + 1)
        if len(around) == 2 and around[0:1] != b"\n" and around[1:2] not in (b"\n", b"\r"):
            raise Damaged(
                f"{entry.part}, line {line_number(entry, start.at)}: the row was read without a newline after "
                f"{self.settle_seconds:g} s of silence, and then went on. Raise settle_seconds, or write whole rows."
            )


@dataclass(frozen=True, slots=True)
class _Tried:
    """A block, what is wrong with its rows, and what the parser made of all of them, or why it could not."""

    block: Block
    flaws: Mapping[int, str]
    rows: pa.RecordBatch | None = None
    failed: str | None = None


def _at_once(schema: pa.Schema) -> int:
    """So many rows make a table that stays small."""
    return max(1, _CELLS // max(1, sum(leaves(field.type) for field in schema)))


def _first_flaw(entry: Entry, block: Block, flaws: Mapping[int, str], rows: int) -> Lost | None:
    row = min(flaws, default=rows)
    return _lost(entry, block, Flaw(row, flaws[row])) if row < rows or block.too_long else None


def _lost(entry: Entry, block: Block, flaw: Flaw) -> Lost:
    start = block.offset + int(block.starts[flaw.row])
    return Lost(1, lambda: f"{entry.part}, line {line_number(entry, start)}: {flaw.reason}")


def _content(piece: Piece) -> bytes:
    assert piece.entry.content is not None
    return piece.entry.content


def _joined(block: Block, rows: Sequence[int]) -> bytes:
    if len(rows) == len(block.ends):
        return block.data
    if isinstance(rows, range):
        return block.data[int(block.starts[rows[0]]) : int(block.ends[rows[-1]])]
    pieces = (block.data[int(block.starts[row]) : int(block.ends[row])] for row in rows)
    return b"".join(piece if piece.endswith(b"\n") else piece + b"\n" for piece in pieces)


def _check(entry: Entry, at: int) -> str:
    """The checksum of the file's first bytes and of the last ones before ``at``."""
    return checksum(*read_ranges(entry, (0, min(at, _CHECK_BYTES)), (max(0, at - _CHECK_BYTES), at)))
