"""Cutting a text file into rows: whole ones only, with their byte offsets, and in bounded memory.

A row ends at a newline. In CSV a newline inside quotes does not end it: a quote opens where a field starts and closes
at the next quote that is not doubled; anywhere else it is an ordinary character. That is how Arrow's parser reads
quotes, so both agree on what a row is. A row that is too long ends at the first newline beyond the limit.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.sources._damage import CutShort, not_readable
from opmon.sources._folder import Entry

BLOCK_BYTES = 4 << 20
BOM = b"\xef\xbb\xbf"
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole rows: row ``i`` is ``data[starts[i]:ends[i]]`` and ``data`` begins at byte ``offset`` of the file."""

    data: bytes
    offset: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    consumed: int
    """How many bytes of the file are done with after this block, blank lines included."""
    too_long: bool = False
    """Whether this is a row of too many bytes to be in ``data``; while it has no end there is no row here."""


@dataclass(frozen=True, slots=True)
class Lines:
    """How rows are told apart. ``delimiter`` is None where quotes have no meaning (JSONL)."""

    delimiter: bytes | None
    max_row_bytes: int
    block_bytes: int = BLOCK_BYTES

    def blocks(self, entry: Entry, start: int, stop: int | None, take_tail: bool) -> Iterator[Block]:
        """The rows from byte ``start`` to ``stop`` (None: to the end as it is now).

        What follows the last newline is a row only if ``take_tail``.
        """
        with open_bytes(entry) as stream:
            _seek(stream, entry, start)
            data, offset, want = b"", start, self.block_bytes
            while True:
                room = want if stop is None else min(want, stop - offset - len(data))
                fresh = _read(stream, entry, room) if room > 0 else b""
                data += fresh
                ends = self._ends_within_reach(data)
                if len(ends):
                    cut = int(ends[-1])
                    yield self._block(data[:cut], offset, ends)
                    data, offset, want = data[cut:], offset + cut, self.block_bytes
                elif len(data) > self.max_row_bytes:
                    left, after, ended = self._after_newline(stream, entry, data, offset, stop)
                    whole = ended or take_tail
                    nothing = np.zeros(1, np.int64)
                    yield Block(b"", offset, nothing, nothing[:whole], after if whole else offset, too_long=True)
                    if not whole:
                        return
                    data, offset, want = left, after, self.block_bytes
                elif fresh:
                    want = max(self.block_bytes, len(data))
                else:
                    if take_tail and data and self.closed(data):
                        yield self._block(data, offset, np.array([len(data)], np.int64))
                    return

    def _ends_within_reach(self, data: bytes) -> NDArray[np.int64]:
        """The ends of the rows before the first one that is too long."""
        ends = self.row_ends(data)
        if len(data) > self.max_row_bytes:
            too_long = np.flatnonzero(np.diff(ends, prepend=0) > self.max_row_bytes)
            ends = ends[: too_long[0]] if len(too_long) else ends
        return ends

    def _after_newline(
        self, stream: IO[bytes], entry: Entry, data: bytes, offset: int, stop: int | None
    ) -> tuple[bytes, int, bool]:
        """What is read beyond the first newline after the limit, its offset, and whether there is such a newline."""
        at = data.find(b"\n", self.max_row_bytes)
        while at < 0:
            offset += len(data)
            room = self.block_bytes if stop is None else min(self.block_bytes, stop - offset)
            data = _read(stream, entry, room) if room > 0 else b""
            if not data:
                return b"", offset, False
            at = data.find(b"\n")
        return data[at + 1 :], offset + at + 1, True

    def row_ends(self, data: bytes) -> NDArray[np.int64]:
        """The offsets just after each newline that ends a row; ``data`` begins where a row begins."""
        letters = np.frombuffer(data, np.uint8)
        newlines = _newlines(letters)
        if self.delimiter is None or b'"' not in data:
            return newlines + 1
        toggles = self._toggles(data, letters)
        return np.asarray(newlines[np.searchsorted(toggles, newlines) % 2 == 0] + 1, np.int64)

    def closed(self, data: bytes) -> bool:
        """Whether the quotes of ``data`` are closed at its end."""
        if self.delimiter is None or b'"' not in data:
            return True
        return len(self._toggles(data, np.frombuffer(data, np.uint8))) % 2 == 0

    def _toggles(self, data: bytes, letters: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Where a quoted piece opens, closes, opens, …"""
        assert self.delimiter is not None
        quotes = np.flatnonzero(letters == _QUOTE)
        before = np.where(quotes > 0, letters[np.maximum(quotes - 1, 0)], _NEWLINE)
        at_start = (before == self.delimiter[0]) | (before == _NEWLINE) | (before == _RETURN)
        doubled = np.diff(quotes, prepend=-2) == 1
        if (at_start | doubled)[0::2].all():
            return quotes  # well formed: every second quote opens a field, or goes on after a doubled one
        toggles, inside, skip = [], False, -1
        for position, opens in zip(quotes.tolist(), at_start.tolist(), strict=True):
            if position == skip:
                continue
            if inside and data[position + 1 : position + 2] == b'"':
                skip = position + 1
            elif inside or opens:
                inside = not inside
                toggles.append(position)
        return np.array(toggles, dtype=np.int64)

    def _block(self, data: bytes, offset: int, ends: NDArray[np.int64]) -> Block:
        letters = np.frombuffer(data, np.uint8)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        length = ends - starts
        first = letters[np.minimum(starts, len(data) - 1)]
        filled = (length > 2) | ((first != _NEWLINE) & ~((first == _RETURN) & (length <= 2)))
        if self.delimiter is None:
            for i in np.flatnonzero(filled & (first <= 32)).tolist():
                filled[i] = bool(data[starts[i] : ends[i]].strip())
        return Block(data, offset, starts[filled], ends[filled], offset + len(data))


def _newlines(letters: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where the newlines are: first the words of eight letters that have one, as most have none."""
    marks = np.empty(-(-len(letters) // 8) * 8, np.bool_)
    marks[len(letters) :] = False
    np.equal(letters, _NEWLINE, out=marks[: len(letters)])
    words = np.flatnonzero(marks.view(np.uint64) != 0)
    within = np.flatnonzero(marks.reshape(-1, 8)[words])
    return np.asarray(words[within >> 3] * 8 + (within & 7), np.int64)


def first_rows(blocks: Iterator[Block], enough: int) -> Block | None:
    """The first rows that follow each other, ``enough`` bytes of them where there are so many; None without a row."""
    found: Block | None = None
    for block in blocks:
        if found is None:
            found = block if len(block.ends) and not block.too_long else None
        elif block.too_long:
            return found
        else:
            found = _behind(found, block)
        if found is not None and len(found.data) >= enough:
            return found
    return found


def _behind(one: Block, other: Block) -> Block:
    size = len(one.data)
    starts, ends = np.append(one.starts, other.starts + size), np.append(one.ends, other.ends + size)
    return Block(one.data + other.data, one.offset, starts, ends, other.consumed)


def open_bytes(entry: Entry) -> IO[bytes]:
    """The file's bytes, unpacked where it is gzip."""
    try:
        return cast("IO[bytes]", gzip.open(entry.open(), "rb")) if is_packed(entry) else entry.open()
    except OSError as exc:
        raise SourceError(f"{entry.part} cannot be opened: {exc.strerror or exc}") from exc


def is_packed(entry: Entry) -> bool:
    return entry.part.lower().endswith(".gz")


def read_range(entry: Entry, start: int, stop: int) -> bytes:
    return read_ranges(entry, (start, stop))[0]


def read_ranges(entry: Entry, *ranges: tuple[int, int]) -> list[bytes]:
    """The bytes of several ranges, in ascending order."""
    found = []
    with open_bytes(entry) as stream:
        for start, stop in ranges:
            _seek(stream, entry, start)
            found.append(_read(stream, entry, stop - start))
    return found


def line_number(entry: Entry, offset: int) -> int:
    """The line, counted from 1, on which byte ``offset`` lies."""
    line, left = 1, offset
    with open_bytes(entry) as stream:
        while left > 0 and (data := _read(stream, entry, min(left, BLOCK_BYTES))):
            line, left = line + data.count(b"\n"), left - len(data)
    return line


def _seek(stream: IO[bytes], entry: Entry, offset: int) -> None:
    try:
        stream.seek(offset)
    except (OSError, EOFError, zlib.error) as exc:
        raise _unreadable(entry, exc) from exc


def _read(stream: IO[bytes], entry: Entry, size: int) -> bytes:
    try:
        return stream.read(size)
    except (OSError, EOFError, zlib.error) as exc:
        raise _unreadable(entry, exc) from exc


def _unreadable(entry: Entry, exc: Exception) -> SourceError:
    message = f"{entry.part} cannot be read: {exc}. If it is cut short or damaged, write it again."
    if isinstance(exc, OSError) and exc.errno is not None:
        return not_readable(message, exc)
    return CutShort(message)
