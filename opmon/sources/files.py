"""Production inputs in files: Parquet, CSV and JSON lines, in a folder, a glob, or one file.

New files and, for text, new rows at the end of a file are what is pending. A file that is being written is left alone:
names that begin with a dot or an underscore or end in ``.tmp``, ``.part`` and the like, Parquet without its footer, a
last line without its newline.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from opmon.abc import Source
from opmon.errors import InputError, SourceError
from opmon.sources._csv import Csv
from opmon.sources._damage import Damaged, Lost
from opmon.sources._folder import Entry, Folder, match_path, open_folder
from opmon.sources._format import Format, Piece
from opmon.sources._jsonl import Jsonl
from opmon.sources._parquet import Parquet
from opmon.sources._position import BEGIN, parse
from opmon.sources._runs import Opened, add_together, held, read_together, runs
from opmon.sources._schema import Columns, declared_types
from opmon.sources._text_files import Text
from opmon.types import Batch, Slice

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_AT_ONCE = 4
_TOLD = 3
_KEPT_BYTES = 64 << 20
_LATEST = 250_000_000_000  # in the year 9892: a time beyond cannot be told
FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
}


@dataclass(frozen=True)
class Files(Source):
    """The source ``files``.

    A position is a row number in Parquet and a byte offset in text, with what is needed to see that the file is still
    the one that was read: one that shrank or was rewritten is an error that names it.

    Files may differ in their columns: a missing column is null, whole numbers and fractions become fractions, and
    anything else that differs is an error. Types of CSV and JSONL columns come from the first MiB of each file, as far
    as the round reaches into it; ``types`` states them instead.

    What cannot be read is found before a round takes it, as far as the names, the footers, the bytes of text and the
    heads of the files tell. ``broken`` says what becomes of it, and of what is found when the round is read: an error
    that names it, or the rest goes on. Rows that are left out keep their place and are counted by the round.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    """A file, a folder (all files of the format in it and below it), or a glob such as ``logs/2026-*/*.parquet``."""
    format: Literal["auto", "parquet", "csv", "jsonl"] = "auto"
    """``auto`` goes by the end of each name: .parquet .pq .csv .tsv .jsonl .ndjson, text also with .gz."""
    pattern: str | None = None
    """Of a folder, only files whose path below it fits this glob; without a slash, whose name does."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Column -> string, int64, float64, float32 or bool, where the file's own type is not what is meant."""
    delimiter: str | None = None
    """Between the cells of a CSV row; found in the header where it is not given."""
    settle_seconds: float = 60.0
    """A last line without a newline counts as a row once the file was left alone for so long."""
    stale_seconds: float = 3600.0
    """A file that is not whole (Parquet without footer, cut gzip, open quote) is an error after so long."""
    max_row_bytes: int = 64 << 20
    """The longest row of text."""
    broken: Literal["stop", "skip"] = "stop"
    """``skip`` leaves out what cannot be read: a file until it can be, of a round's files a row or a row group."""

    def __post_init__(self) -> None:
        if not self.path:
            raise InputError("path is empty; give a file, a folder or a glob such as logs/*.parquet")
        for name, given, allowed in (
            ("format", self.format, ("auto", *FORMATS)),
            ("broken", self.broken, ("stop", "skip")),
        ):
            if given not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}; got {given!r}")
        for name in ("settle_seconds", "stale_seconds", "max_row_bytes"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be greater than 0; got {getattr(self, name)!r}")
        declared_types(self.types)
        Csv(self.delimiter, self.max_row_bytes)

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """What can be read now, oldest file first, at most ``limit`` rows."""
        left_out: dict[str, SourceError] = {}
        slices = self._look(positions, limit, left_out)
        while limit is not None and any(piece.part in left_out for piece in slices):
            slices = self._look(positions, limit, left_out)  # others take the room of those that go with no other
        if left_out:
            told = "; ".join(str(problem) for problem in list(left_out.values())[:_TOLD])
            more = f"; and {len(left_out) - _TOLD} more" if len(left_out) > _TOLD else ""
            _log.warning("left out: %s%s", told, more)
        return [piece for piece in slices if piece.part not in left_out]

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order; all batches have the same columns and types."""
        folder, lost, kept = self._folder(), dict[str, SourceError](), list[Opened]()
        schema = self._schema(folder, slices, columns, lost, kept)
        opened = iter(kept) if len(kept) + len(lost) == len(slices) else self._opened(folder, slices, lost)
        for run in runs(opened):
            batches = read_together(run, schema) if len(run) > 1 and len(schema) else None
            if batches is not None:
                yield from batches
                continue
            for one in run:
                yield from self._batches(one, schema)
        for index, piece in enumerate(slices):
            if piece.part in lost:
                yield _without_rows(index, piece.rows, schema, str(lost[piece.part]), piece.rows)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again, ordered by slice, then as asked."""
        import pyarrow as pa

        folder = self._folder()
        schema = self._schema(folder, slices, None, {}, [])

        def taken(index: int) -> pa.Table:
            wanted = list(rows[index])
            ordered = sorted(set(wanted))
            one = self._open(folder, index, slices[index])
            table = pa.Table.from_batches(one.form.take(one.piece, ordered, schema), schema)
            at = {row: i for i, row in enumerate(ordered)}
            return table.take(pa.array([at[row] for row in wanted], pa.int64()))

        for index in sorted(rows):
            _require_rows(slices, index, rows[index])
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # most of it is decoding, which threads do side by side
            tables = list(pool.map(taken, [index for index in sorted(rows) if len(rows[index])]))
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _look(self, positions: Mapping[str, str], limit: int | None, left_out: dict[str, SourceError]) -> list[Slice]:
        """The slices that can be read; what is found to be broken is added to ``left_out``."""
        slices: list[Slice] = []
        folder, now = self._folder(), time.time()

        def opened() -> Iterator[Opened]:
            left = limit
            for entry in folder.entries(lambda problem: self._leave_out(left_out, str(problem), problem)):
                if left is not None and left <= 0:
                    return
                if entry.part in left_out:
                    continue
                try:
                    one = self._pending_of(entry, positions.get(entry.part), left, now)
                except SourceError as exc:
                    self._leave_out(left_out, entry.part, exc)
                    continue
                if one is not None:
                    slices.append(one.slice)
                    left = None if left is None else left - one.slice.rows
                    yield one

        self._columns(opened(), lambda part, problem: self._leave_out(left_out, part, problem))
        return slices

    def _leave_out(self, left_out: dict[str, SourceError], part: str, problem: SourceError) -> None:
        if self.broken == "stop":
            raise problem
        left_out[part] = problem

    def _pending_of(self, entry: Entry, position: str | None, limit: int | None, now: float) -> Opened | None:
        start = parse(position, entry.part)
        if start.finished_with(entry.size, entry.modified_ns):
            return None
        entry, form = held(entry), self._format(entry.part)
        span = form.count(entry, start, limit, abs(now - entry.modified_ns / 1e9))
        if span is None:
            return None
        if span.lost is not None and self.broken == "stop":
            raise Damaged(span.lost.why())
        if not span.rows:
            return None
        # rows at the end of a file that grows came some time after it was last read to its end
        since = start.modified_ns if start.started else entry.modified_ns
        arrived = datetime.fromtimestamp(min(max(since / 1e9, 0.0), _LATEST), UTC)
        piece = Slice(entry.part, position or BEGIN, str(span.stop), span.rows, arrived)
        return Opened(0, piece, form, Piece(entry, start, span.stop))

    def _columns(self, opened: Iterator[Opened], refuse: Callable[[str, SourceError], None]) -> Columns:
        """The columns of all files, without those that are refused."""
        columns = Columns(declared_types(self.types))
        for run in runs(opened):
            if len(run) > 1 and add_together(columns, run):
                continue
            for one in run:
                try:
                    head = one.form.head(one.piece)
                    if head.lost is not None and self.broken == "stop":
                        raise Damaged(head.lost.why())
                    columns.add(one.slice.part, one.form.strong, head.schema)
                except SourceError as exc:
                    refuse(one.slice.part, exc)
        return columns

    def _schema(
        self,
        folder: Folder,
        slices: Sequence[Slice],
        columns: Sequence[str] | None,
        lost: dict[str, SourceError],
        kept: list[Opened],
    ) -> pa.Schema:
        """The schema of the files as far as the slices reach.

        ``lost`` are those that are damaged, and left out; ``kept`` what need not be opened again: small files that hold
        one slice each.
        """
        stops = {piece.part: piece.stop for piece in slices}
        firsts = list({piece.part: piece for piece in reversed(slices)}.values())[::-1]

        def opened() -> Iterator[Opened]:
            room = _KEPT_BYTES if len(firsts) == len(slices) else 0
            for one in self._opened(folder, [replace(first, stop=stops[first.part]) for first in firsts], lost):
                room -= one.piece.entry.size
                if room >= 0 and one.piece.entry.content is not None:
                    kept.append(one)
                yield one

        known = self._columns(opened(), lambda part, problem: self._lose(lost, part, problem))
        if lost and len(lost) == len(firsts):
            raise next(iter(lost.values()))
        kept[:] = [one for one in kept if one.slice.part not in lost]
        return known.schema(columns)

    def _lose(self, lost: dict[str, SourceError], part: str, problem: SourceError) -> None:
        """Note that a file is damaged; raises where that stops the round, and what may pass."""
        if self.broken == "stop" or not isinstance(problem, Damaged):
            raise problem
        lost[part] = problem

    def _opened(self, folder: Folder, slices: Sequence[Slice], lost: dict[str, SourceError]) -> Iterator[Opened]:
        for index, piece in enumerate(slices):
            if piece.part not in lost:
                try:
                    one = self._open(folder, index, piece)
                except SourceError as exc:
                    self._lose(lost, piece.part, exc)
                    continue
                yield one

    def _open(self, folder: Folder, index: int, piece: Slice) -> Opened:
        entry, form = held(folder.entry(piece.part)), self._format(piece.part)
        stop = parse(piece.stop, piece.part)
        form.verify(entry, stop)
        return Opened(index, piece, form, Piece(entry, parse(piece.start, piece.part), stop))

    def _batches(self, one: Opened, schema: pa.Schema) -> Iterator[Batch]:
        """The rows of one slice, and at its end how many were left out and why."""
        at, gone, reason = 0, 0, ""
        for found in one.form.batches(one.piece, schema):
            if isinstance(found, Lost):
                reason = reason or found.why()
                if self.broken == "stop":
                    raise Damaged(reason)
                at, gone = at + found.rows, gone + found.rows
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

    def _folder(self) -> Folder:
        return open_folder(self.path, self._wanted)

    def _wanted(self, part: str) -> bool:
        if self.pattern is not None:
            name = part if "/" in self.pattern else part.rsplit("/", 1)[-1]
            return match_path(name, tuple(self.pattern.split("/")))
        endings = FORMATS.get(self.format) or tuple(end for ends in FORMATS.values() for end in ends)
        return part.lower().endswith(endings)

    @functools.cached_property
    def _formats(self) -> Mapping[str | None, Format]:
        def text(parser: Csv | Jsonl) -> Text:
            return Text(parser, self.settle_seconds, self.stale_seconds)

        return {
            "parquet": Parquet(self.stale_seconds),
            "csv": text(Csv(self.delimiter, self.max_row_bytes)),
            "jsonl": text(Jsonl(self.max_row_bytes)),
        }

    def _format(self, part: str) -> Format:
        kind: str | None = self.format
        if kind == "auto":
            kind = next((name for name, ends in FORMATS.items() if part.lower().endswith(ends)), None)
        if kind in self._formats:
            return self._formats[kind]
        raise SourceError(
            f"{part}: the format cannot be told from the name {Path(part).name!r}; say format: parquet, csv or jsonl"
        )


def _without_rows(index: int, at: int, schema: pa.Schema, reason: str, gone: int) -> Batch:
    import pyarrow as pa

    columns = [pa.array([], field.type) for field in schema]
    return Batch(index, at, pa.record_batch(columns, schema=schema), {reason: gone})


def _require_rows(slices: Sequence[Slice], index: int, wanted: Sequence[int]) -> None:
    if not 0 <= index < len(slices):
        raise InputError(f"there is no slice {index}; there are {len(slices)}")
    piece = slices[index]
    wrong = [row for row in wanted if not 0 <= row < piece.rows]
    if wrong:
        raise InputError(f"slice {index} ({piece.part}) has rows 0..{piece.rows - 1}; asked for {wrong[0]}")
