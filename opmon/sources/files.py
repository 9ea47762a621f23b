"""Production inputs in files: Parquet, CSV, JSON lines or pictures, in a folder, a glob, or one file.

New files and, for text, new rows at the end of a file are what is pending. A file that is being written is left alone:
names that begin with a dot or an underscore or end in ``.tmp``, ``.part`` and the like, Parquet without its footer, a
last line without its newline.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from opmon.abc import Flaw, Source
from opmon.errors import InputError, SourceError
from opmon.sources._csv import Csv
from opmon.sources._folder import ListedOnce, Place, match_path
from opmon.sources._format import Format
from opmon.sources._jsonl import Jsonl
from opmon.sources._looking import Looking
from opmon.sources._parquet import Parquet
from opmon.sources._partitions import partitions_of, placed
from opmon.sources._pictures import Pictures
from opmon.sources._position import BEGIN
from opmon.sources._reading import Reading
from opmon.sources._schema import Columns, declared_types
from opmon.sources._since import NOW, moment_of, since_text
from opmon.sources._stored import open_place
from opmon.sources._text_files import Text
from opmon.sources._wanted import require_rows
from opmon.stores import SCHEMES, scheme_of, shown_place, store_url
from opmon.types import Batch, Slice

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_AT_ONCE = 4
_MARK = ".since"
"""A part that no file can be: names that begin with a dot are left alone."""
FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
}
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
"""Files that are rows themselves where ``format`` says so: else they belong to the rows that name them."""


@dataclass(frozen=True)
class Files(Source):
    """The source ``files``.

    A position is a row number in Parquet and a byte offset in text, with what is needed to see that the file is still
    the one that was read: one that shrank or was rewritten is an error that names it.

    Files may differ in their columns: a missing column is null, whole numbers and fractions become fractions, and
    anything else that differs is an error. Types of CSV and JSONL columns come from the first MiB of each file, as far
    as the round reaches into it; ``types`` states them instead.

    What the folders say, as in ``date=2026-03-01/country=DE/``, are columns of all the files in them.

    What cannot be read is found before a round takes it, as far as the names, the footers, the bytes of text and the
    heads of the files tell. ``broken`` says what becomes of it, and of what is found when the round is read: an error
    that names it, or the rest goes on. Rows that are left out keep their place and are counted by the round.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    """A file, a folder (all files of the format in it and below it), or a glob such as ``logs/2026-*/*.parquet``; also
    in an object store: ``s3://bucket/logs``, ``gs://…``, ``abfs://…``."""
    format: Literal["auto", "parquet", "csv", "jsonl", "pictures"] = "auto"
    """``auto`` goes by the end of each name: .parquet .pq .csv .tsv .jsonl .ndjson, text also with .gz. With
    ``pictures`` each file (.png .jpg .jpeg .webp .bmp .gif .tif .tiff) is a row: ``file``, ``image``, ``modified``."""
    pattern: str | None = None
    """Of a folder, only files whose path below it fits this glob; without a slash, whose name does."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Column -> string, int64, float64, float32 or bool, where the file's own type is not what is meant."""
    delimiter: str | None = None
    """Between the cells of a CSV row; found in the header where it is not given."""
    settle_seconds: float = 60.0
    """A last line without a newline, and a picture that is neither PNG nor JPEG, counts as a row once the file was left
    alone for so long."""
    stale_seconds: float = 3600.0
    """A file that is not whole (Parquet without footer, cut gzip, open quote) is an error after so long."""
    max_row_bytes: int = 64 << 20
    """The longest row of text."""
    since: str | None = None
    """Where a monitor that has read nothing begins: a date or a time (files that were last written before it are passed
    over), or ``now`` (all that is there is)."""
    broken: Literal["stop", "skip", "quarantine"] = "stop"
    """``skip`` leaves out what cannot be read: a file until it can be, of a round's files a row or a row group;
    ``quarantine`` also notes such files with their reasons, for ``opmon inputs``."""

    def __post_init__(self) -> None:
        if not self.path:
            raise InputError("path is empty; give a file, a folder or a glob such as logs/*.parquet")
        if scheme_of(self.path) in SCHEMES:
            _of_store(self.path)
        for name, given, allowed in (
            ("format", self.format, ("auto", *FORMATS, "pictures")),
            ("broken", self.broken, ("stop", "skip", "quarantine")),
        ):
            if given not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}; got {given!r}")
        for name in ("settle_seconds", "stale_seconds", "max_row_bytes"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be greater than 0; got {getattr(self, name)!r}")
        object.__setattr__(self, "since", since_text(self.since))
        declared_types(self.types)
        Csv(self.delimiter, self.max_row_bytes)

    @property
    def asks(self) -> str:
        """The folder, or the store and its bucket."""
        return shown_place(self.path)

    def constants(self, piece: Slice) -> Mapping[str, str | int | None]:
        """What the folders of a file say of all its rows: ``country=DE/`` is a column ``country``."""
        named = partitions_of(piece.part)
        if not named:
            return {}
        reading = self._reading([piece])
        reading.schema(None)
        return {name: value for name, value in named.items() if name not in reading.columns.in_files}

    def begins(self) -> Mapping[str, str]:
        """Behind the files that are older than ``since``; a mark is kept even where there are none."""
        moment = moment_of(self.since, datetime.now(UTC))
        if moment is None:
            return {}
        stops = {_MARK: BEGIN}
        for piece in self._looking(stops=False).each():
            if self.since == NOW or piece.arrived_at < moment:
                stops[piece.part] = piece.stop
        return stops

    def flaws(self, positions: Mapping[str, str], limit: int | None = None) -> Sequence[Flaw]:
        """The damaged files, with ``broken: quarantine``."""
        if self.broken != "quarantine":
            return ()
        return self._looking(stops=False).flaws(positions, limit)

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """What can be read now, oldest file first, at most ``limit`` rows."""
        looking = self._looking(stops=self.broken == "stop")
        slices = looking.slices(positions, limit)
        if looking.left_out:
            _log.warning("left out: %s", looking.told())
        return slices

    def for_cycle(self) -> Source:
        """The same files, listed once: a log of a hundred thousand files makes many rounds of one cycle."""
        return _ListedOnce(**{each.name: getattr(self, each.name) for each in fields(self)})

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order; all batches have the same columns and types."""
        reading = self._reading(slices)
        yield from reading.batches(reading.schema(columns))

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        """The rows of some of the slices, with the columns and types of all."""
        reading = self._reading(slices)
        yield from reading.batches(reading.schema(None), numbers)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again, ordered by slice, then as asked."""
        import pyarrow as pa

        reading = self._reading(slices)
        schema = reading.schema(None)

        def taken(index: int) -> pa.Table:
            wanted = list(rows[index])
            ordered = sorted(set(wanted))
            one = reading.open(index)
            found = one.form.take(one.piece, ordered, schema)
            names, part = reading.columns.of_folders, slices[index].part
            whole = (placed(rows, part, names) for rows in found) if names else found
            table = pa.Table.from_batches(list(whole), schema)
            at = {row: i for i, row in enumerate(ordered)}
            return table.take(pa.array([at[row] for row in wanted], pa.int64()))

        for index in sorted(rows):
            require_rows(slices, index, rows[index])
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # most of it is decoding, which threads do side by side
            tables = list(pool.map(taken, [index for index in sorted(rows) if len(rows[index])]))
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _looking(self, *, stops: bool) -> Looking:
        return Looking(self._folder(), self._format, self._columns, stops)

    def _reading(self, slices: Sequence[Slice]) -> Reading:
        return Reading(self._folder(), self._format, self._columns(), self.broken == "stop", slices)

    def _columns(self) -> Columns:
        return Columns(declared_types(self.types))

    def _folder(self) -> Place:
        return open_place(self.path, self._wanted)

    def _wanted(self, part: str) -> bool:
        if self.pattern is not None:
            name = part if "/" in self.pattern else part.rsplit("/", 1)[-1]
            return match_path(name, tuple(self.pattern.split("/")))
        if self.format == "pictures":
            return part.lower().endswith(PICTURES)
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
            "pictures": Pictures(self.settle_seconds, self.stale_seconds),
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


@dataclass(frozen=True)
class _ListedOnce(Files):
    """The files as they were when they were first listed."""

    @functools.cached_property
    def _place(self) -> ListedOnce:
        return ListedOnce(super()._folder())

    def _folder(self) -> Place:
        return self._place

    def _looking(self, *, stops: bool) -> Looking:
        return replace(super()._looking(stops=stops), now=self._place.listed_at)


def _of_store(path: str) -> None:
    try:
        store_url(path)
    except InputError as exc:
        raise InputError(f"path {exc}") from exc
