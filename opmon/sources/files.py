"""Production inputs in files: Parquet, CSV and JSON lines, in a folder, a glob, or one file.

New files and, for text, new rows at the end of a file are what is pending. A file that is being written is left alone:
names that begin with a dot or an underscore or end in ``.tmp``, ``.part`` and the like, Parquet without its footer, a
last line without its newline.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from opmon.abc import Source
from opmon.errors import InputError, SourceError
from opmon.sources._csv import Csv
from opmon.sources._folder import Entry, Folder, match_path, open_folder
from opmon.sources._format import Format, Span
from opmon.sources._jsonl import Jsonl
from opmon.sources._parquet import Parquet
from opmon.sources._position import BEGIN, parse
from opmon.sources._schema import declared_types, unify
from opmon.sources._text_files import Text
from opmon.types import Batch, Slice

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_AT_ONCE = 4
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
    broken: Literal["error", "skip"] = "error"
    """``skip`` leaves out a file that cannot be read, with a warning in the log, until it can."""

    def __post_init__(self) -> None:
        if not self.path:
            raise InputError("path is empty; give a file, a folder or a glob such as logs/*.parquet")
        for name, given, allowed in (
            ("format", self.format, ("auto", *FORMATS)),
            ("broken", self.broken, ("error", "skip")),
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
        slices: list[Slice] = []
        left, now = limit, time.time()
        for entry in self._folder().entries():
            if left is not None and left <= 0:
                break
            try:
                found = self._pending_of(entry, positions.get(entry.part), left, now)
            except SourceError as exc:
                if self.broken == "error":
                    raise
                _log.warning("left out: %s", exc)
                continue
            if found is not None:
                slices.append(found)
                left = None if left is None else left - found.rows
        return slices

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order; all batches have the same columns and types."""
        folder = self._folder()
        schema = self._schema(folder, slices, columns)
        for index, piece in enumerate(slices):
            first_row = 0
            entry, form = self._opened(folder, piece)
            for rows in form.batches(entry, parse(piece.start, piece.part), parse(piece.stop, piece.part), schema):
                yield Batch(index, first_row, rows)
                first_row += rows.num_rows
            if first_row != piece.rows:
                raise SourceError(
                    f"{piece.part} gave {first_row} rows between two positions that held {piece.rows} when the round "
                    f"was opened: it was changed. Put back the file that was there."
                )

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again, ordered by slice, then as asked."""
        import pyarrow as pa

        folder = self._folder()
        schema = self._schema(folder, slices, None)

        def taken(index: int) -> pa.Table:
            piece, wanted = slices[index], list(rows[index])
            ordered = sorted(set(wanted))
            entry, form = self._opened(folder, piece)
            start, stop = parse(piece.start, piece.part), parse(piece.stop, piece.part)
            table = pa.Table.from_batches(form.take(entry, start, stop, ordered, schema), schema)
            at = {row: i for i, row in enumerate(ordered)}
            return table.take(pa.array([at[row] for row in wanted], pa.int64()))

        for index in sorted(rows):
            _require_rows(slices, index, rows[index])
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # most of it is decoding, which threads do side by side
            tables = list(pool.map(taken, [index for index in sorted(rows) if len(rows[index])]))
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _pending_of(self, entry: Entry, position: str | None, limit: int | None, now: float) -> Slice | None:
        start = parse(position, entry.part)
        if start.finished_with(entry.size, entry.modified_ns):
            return None
        age = now - entry.modified_ns / 1e9
        span: Span | None = self._format(entry.part).count(entry, start, limit, age)
        if span is None or not span.rows:
            return None
        # rows at the end of a file that grows came some time after it was last read to its end
        since = start.modified_ns if start.started else entry.modified_ns
        arrived = datetime.fromtimestamp(since / 1e9, UTC)
        return Slice(entry.part, position or BEGIN, str(span.stop), span.rows, arrived)

    def _schema(self, folder: Folder, slices: Sequence[Slice], columns: Sequence[str] | None) -> pa.Schema:
        last = {piece.part: piece for piece in slices}
        found = []
        for part, piece in last.items():
            entry, form = self._opened(folder, piece)
            found.append((part, form.strong, form.schema(entry, parse(piece.stop, part))))
        return unify(found, columns, declared_types(self.types))

    def _opened(self, folder: Folder, piece: Slice) -> tuple[Entry, Format]:
        entry, form = folder.entry(piece.part), self._format(piece.part)
        form.verify(entry, parse(piece.stop, piece.part))
        return entry, form

    def _folder(self) -> Folder:
        return open_folder(self.path, self._wanted)

    def _wanted(self, part: str) -> bool:
        if self.pattern is not None:
            name = part if "/" in self.pattern else part.rsplit("/", 1)[-1]
            return match_path(name, tuple(self.pattern.split("/")))
        endings = FORMATS.get(self.format) or tuple(end for ends in FORMATS.values() for end in ends)
        return part.lower().endswith(endings)

    def _format(self, part: str) -> Format:
        kind: str | None = self.format
        if kind == "auto":
            kind = next((name for name, ends in FORMATS.items() if part.lower().endswith(ends)), None)
        if kind == "parquet":
            return Parquet(self.stale_seconds)
        if kind == "csv":
            return Text(Csv(self.delimiter, self.max_row_bytes), self.settle_seconds, self.stale_seconds)
        if kind == "jsonl":
            return Text(Jsonl(self.max_row_bytes), self.settle_seconds, self.stale_seconds)
        raise SourceError(
            f"{part}: the format cannot be told from the name {Path(part).name!r}; say format: parquet, csv or jsonl"
        )


def _require_rows(slices: Sequence[Slice], index: int, wanted: Sequence[int]) -> None:
    if not 0 <= index < len(slices):
        raise InputError(f"there is no slice {index}; there are {len(slices)}")
    piece = slices[index]
    wrong = [row for row in wanted if not 0 <= row < piece.rows]
    if wrong:
        raise InputError(f"slice {index} ({piece.part}) has rows 0..{piece.rows - 1}; asked for {wrong[0]}")
