"""The source ``delta``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Literal

import pyarrow as pa

from opmon.abc import Source
from opmon.errors import InputError, SourceError
from opmon.sources._since import NOW, Since, moment_of, since_text
from opmon.sources._wanted import require_rows
from opmon.sources.delta.log import File, Table, require_installed
from opmon.sources.delta.place import BEGIN, Place
from opmon.sources.delta.rows import batches, count, gone
from opmon.stores import shown_place
from opmon.types import Batch, Slice
from opmon.wording import did_you_mean, nearest

_log = logging.getLogger(__name__)

PART = "table"
GONE = "rows that VACUUM removed from the Delta table before they were read"


@dataclass(frozen=True)
class Delta(Source):
    """A table of Delta Lake, such as an inference table of Databricks, by version: rows that commits append.

    A monitor begins with the table as it is, and then reads the files that each new version adds. What OPTIMIZE
    rewrites does not come again. Rows that a DELETE or UPDATE changes stay as they were read; a MERGE that rewrites
    files, an overwrite, and a RESTORE that brings rows back, stop the source (`changes`). A file that VACUUM
    removed before it was read is an error, or passed over (`vacuumed`): keep files for longer than rounds take. A
    column that a file does not have yet is null; partitions are columns.

    Deletion vectors and mapped columns are not read, and refused in words. Object stores are opened with what the
    environment says (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL ...). It needs `pip install 'opmon[delta]'`.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    """The table's folder, or its address such as s3://bucket/table."""
    since: Since | int = None
    """A version, a date, a time, or now: a new monitor begins with what was committed from then on."""
    changes: Literal["stop", "skip"] = "stop"
    """What becomes of versions that rewrite rows and may add some: an error, or they are passed over."""
    vacuumed: Literal["stop", "skip"] = "stop"
    """What becomes of files, and of versions, that are gone before they were read: an error, or they are passed over
    and their rows counted as never read."""

    def __post_init__(self) -> None:
        if not self.path:
            raise InputError("path is empty; give the table's folder, or an address such as s3://bucket/table")
        if self.changes not in ("stop", "skip"):
            raise InputError(f"changes must be one of stop, skip; got {self.changes!r}")
        if self.vacuumed not in ("stop", "skip"):
            raise InputError(f"vacuumed must be one of stop, skip; got {self.vacuumed!r}")
        if isinstance(self.since, bool) or (isinstance(self.since, int) and self.since < 0):
            raise InputError(f"since must be a version such as 12, a date, or now; got {self.since!r}")
        if not isinstance(self.since, int):
            object.__setattr__(self, "since", since_text(self.since))
        require_installed()

    @property
    def asks(self) -> str:
        """The folder, or the store and its bucket."""
        return shown_place(self.path)

    def begins(self) -> Mapping[str, str]:
        """Behind the version before the first that ``since`` means."""
        if self.since is None:
            return {}
        table = Table(self.path)
        if isinstance(self.since, int):
            first = self.since
        elif str(self.since).lower() == NOW:
            first = table.version + 1
        else:
            moment = moment_of(str(self.since), datetime.now(UTC))
            first = table.version_of(moment) if moment is not None else 0
        return {PART: str(Place.behind(first - 1))}

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """The files that came since, oldest version first, at most ``limit`` rows; one slice for each file."""
        table = Table(self.path)
        start = positions.get(PART, BEGIN)
        at = Place.parse(start)
        left, slices, needed = limit, list[Slice](), list[str]()
        for version, number, file in self._files(table, at):
            if self._passes_over(table, file):
                continue
            whole = count(table, file)
            done = at.rows if (version, number) == (at.version, at.file) else 0
            rows = whole - done if left is None else min(whole - done, left)
            if left is not None and left <= 0:
                break
            if rows <= 0:
                continue
            base = at.base if at.base is not None else table.version
            stop = str(Place(base, version, number, done + rows))
            slices.append(Slice(PART, start, stop, rows, file.at))
            needed.append(file.path)
            start, left = stop, None if left is None else left - rows
        self._require_there(table, needed)
        return slices

    def lost(self, slices: Sequence[Slice]) -> Mapping[str, int]:
        """The rows of files that were gone and lie between one slice and the next."""
        if self.vacuumed == "stop" or not slices:
            return {}
        table = Table(self.path)
        missed = sum(self._missed(table, Place.parse(piece.start), Place.parse(piece.stop)) for piece in slices)
        return {GONE: missed} if missed else {}

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order, with the columns that the table has now."""
        yield from self._batches(slices, range(len(slices)), columns)

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        """The rows of some of the slices."""
        yield from self._batches(slices, numbers, None)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again, ordered by slice, then as asked."""
        for index in rows:
            require_rows(slices, index, rows[index])
        table = Table(self.path)
        taken = [table.schema.empty_table()]
        for index in sorted(rows):
            if not rows[index]:
                continue
            low, high = min(rows[index]), max(rows[index]) + 1
            file, first = self._file(table, slices[index])
            found = batches(table, file, first + low, first + high, table.schema)
            place = pa.array([row - low for row in rows[index]], pa.int64())
            taken.append(pa.Table.from_batches(found, table.schema).take(place))
        return pa.concat_tables(taken)

    def _batches(
        self, slices: Sequence[Slice], numbers: Sequence[int], columns: Sequence[str] | None
    ) -> Iterator[Batch]:
        table = Table(self.path)
        schema = _schema(table, columns)
        for index in numbers:
            piece, at = slices[index], 0
            file, first = self._file(table, piece)
            if self._passes_over(table, file):
                nothing = pa.RecordBatch.from_pylist([], schema)
                yield Batch(index, 0, nothing, {GONE: piece.rows})
                continue
            for batch in batches(table, file, first, first + piece.rows, schema):
                yield Batch(index, at, batch)
                at += batch.num_rows
            if at != piece.rows:
                raise SourceError(f"{table.shown}: {file.path} gives {at} rows where the log says {piece.rows}")

    def _files(self, table: Table, at: Place) -> Iterator[tuple[int, int, File]]:
        """Files from a place on, each with its version and number; the one in which the place lies is the first."""
        base = table.version if at.base is None else at.base
        first = base if at.base is None else at.version
        for version in range(max(first, 0), table.version + 1):
            if version == at.version and at.is_whole:
                continue
            if version != base and self.vacuumed == "skip" and version < table.oldest_logged:
                _log.warning("%s: version %s is gone from its log: what it added is not read", table.shown, version)
                continue
            for number, file in enumerate(self._of(table, base, version, begun=version == at.version)):
                if version > at.version or number >= at.file:
                    yield version, number, file

    def _passes_over(self, table: Table, file: File) -> bool:
        return self.vacuumed == "skip" and not table.has(file)

    def _missed(self, table: Table, at: Place, stop: Place) -> int:
        """How many rows lie between two places, before the file of the second."""
        if at.base is None and stop.base is not None:
            at = Place(stop.base, stop.base)
        missed = 0
        for version, number, file in self._files(table, at):
            if (version, number) >= (stop.version, stop.file):
                break
            done = at.rows if (version, number) == (at.version, at.file) else 0
            missed += max((file.rows or 0) - done, 0)
        return missed

    def _of(self, table: Table, base: int, version: int, *, begun: bool) -> Sequence[File]:
        """The files of a version; one that was ``begun`` is read to its end, whatever it is."""
        if version == base:
            return table.at(version)
        return table.commit(version).files if begun else table.added(version, self.changes)

    def _file(self, table: Table, piece: Slice) -> tuple[File, int]:
        """The file of a slice, and the number of the slice's first row in it."""
        stop = Place.parse(piece.stop)
        if stop.base is None or stop.version > table.version:
            raise SourceError(f"{table.shown} is at version {table.version} and has no {piece.stop!r}: is it the same?")
        return self._of(table, stop.base, stop.version, begun=True)[stop.file], stop.rows - piece.rows

    def _require_there(self, table: Table, paths: Sequence[str]) -> None:
        found = table.files.get_file_info(list(dict.fromkeys(paths))) if paths else []
        missing = [info.path for info in found if info.type == pa.fs.FileType.NotFound]
        if missing:
            raise gone(table, missing)


def _schema(table: Table, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return table.schema
    for name in columns:
        if name not in table.schema.names:
            hint = did_you_mean(nearest(name, table.schema.names))
            raise SourceError(f"{table.shown} has no column {name!r}; it has: {', '.join(table.schema.names)}.{hint}")
    return pa.schema([table.schema.field(name) for name in dict.fromkeys(columns)])
