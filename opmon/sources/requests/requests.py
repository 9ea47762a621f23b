"""The source ``requests``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import pyarrow as pa

from opmon.abc import Flaw, Source
from opmon.errors import InputError, SourceError
from opmon.sources._ahead import mapped
from opmon.sources._damage import Damaged
from opmon.sources.files import Files
from opmon.sources.nested import Nested, as_array
from opmon.sources.requests.payloads import Row, plain_text, rows_of
from opmon.stores import shown_place
from opmon.tables import joined
from opmon.types import Batch, Json, Slice

Layout = Literal["mlflow", "v2", "sagemaker"]
OWN = ("id", "timestamp", "model_version", "prediction", "scores", "response")
"""The columns that every row has beside the input's own."""
_REQUEST, _RESPONSE, _STATUS = "request", "response", "status_code"
_FAILED = "no request in this piece of the log succeeded"
_MARK = "~"
_AT_ONCE = 4
"""So many files are opened side by side for the names of their columns."""
_IDS = ("databricks_request_id", "client_request_id", "request_id", "id")
_TIMES = ("timestamp_ms", "request_time", "timestamp", "time")
_SIDES, _EVENT = ("captureData.endpointInput", "captureData.endpointOutput"), "eventMetadata"


@dataclass(frozen=True)
class Requests(Source):
    """Requests to a model server as it logs them, in files: one input for each row that a request asked about.

    ``layout`` says who wrote them: ``mlflow`` (Databricks inference tables, and any log with the columns ``request``
    and ``response`` as ``mlflow models serve`` takes and gives them), ``v2`` (the V2 inference protocol of KServe,
    MLServer and Triton, in the same columns) or ``sagemaker`` (data capture files). Its rows have the input's own
    columns, by name where the request has names and else a list in ``features``, and ``id``, ``timestamp``,
    ``model_version``, ``prediction``, ``scores``, and the whole answer as JSON in ``response``. Name in ``columns``
    which of them to use. Requests that failed (another ``status_code`` than 200) are passed over; one that cannot be
    understood is an input with nothing in it, which is counted as such.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    """A file, a folder, or a glob, as with the source ``files``."""
    layout: Layout = "mlflow"
    """Who wrote the log."""
    pattern: str | None = None
    """Of a folder, only files whose path below it fits this glob."""
    settle_seconds: float = 60.0
    """A last line without a newline counts once the file was left alone for so long."""
    broken: Literal["stop", "skip", "quarantine"] = "stop"
    """``skip`` leaves out files and lines that cannot be read, ``quarantine`` also notes such files for ``opmon
    inputs``."""
    _files: Source = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.layout not in ("mlflow", "v2", "sagemaker"):
            raise InputError(f"layout must be one of mlflow, v2, sagemaker; got {self.layout!r}")
        kind: Literal["jsonl", "auto"] = "jsonl" if self.layout == "sagemaker" else "auto"
        files = Files(self.path, kind, self.pattern, settle_seconds=self.settle_seconds, broken=self.broken)
        captured = [f"{side}.{key}" for side in _SIDES for key in ("data", "encoding")]
        paths = (*captured, f"{_EVENT}.eventId", f"{_EVENT}.inferenceTime") if self.layout == "sagemaker" else ()
        object.__setattr__(self, "_files", Nested(files, paths, may_lack=True) if paths else files)

    @property
    def asks(self) -> str:
        """The folder, or the store and its bucket."""
        return shown_place(self.path)

    @property
    def answers(self) -> tuple[str, ...]:
        return ("prediction", "scores", "response")

    def flaws(self, positions: Mapping[str, str], limit: int | None = None) -> Sequence[Flaw]:
        return self._files.flaws({part: _of_file(stop) for part, stop in positions.items()}, limit)

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """What can be read now; a request is never cut, so that a few inputs more than ``limit`` may come."""
        before = {part: _of_file(stop) for part, stop in positions.items()}
        pieces = self._files.pending(before, limit)
        counted = self._counted(pieces, positions)
        total, requests = sum(piece.rows for piece in counted), sum(piece.rows for piece in pieces)
        if limit is None or total <= limit or requests < 2:
            return counted
        return self._counted(self._files.pending(before, max(1, limit * requests // total)), positions)

    def for_cycle(self) -> Source:
        one = replace(self)
        object.__setattr__(one, "_files", self._files.for_cycle())
        return one

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        yield from self._batches(slices, range(len(slices)), columns)

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        yield from self._batches(slices, numbers, None)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        for index in sorted(rows):
            if not 0 <= index < len(slices) or any(not 0 <= row < slices[index].rows for row in rows[index]):
                raise InputError(f"slice {index} has no such row; asked for {list(rows[index])[:5]}")
        tables = [
            _taken(slices[index], list(batches), rows[index])
            for index, batches in itertools.groupby(
                self._batches(slices, sorted(rows), None), key=lambda batch: batch.slice_index
            )
        ]
        return joined(tables) if tables else pa.table({name: pa.nulls(0) for name in OWN})

    def _counted(self, pieces: Sequence[Slice], positions: Mapping[str, str]) -> list[Slice]:
        """The slices with as many rows as their requests have inputs; where one stops, it says how many requests."""
        rows, passed, starts = [0] * len(pieces), [0] * len(pieces), dict(positions)
        for found in self._opened(pieces, range(len(pieces))):
            rows[found.index], passed[found.index] = found.first + len(found.rows), found.requests
        counted = []
        for piece, count, requests in zip(pieces, rows, passed, strict=True):
            start, stop = starts.get(piece.part, piece.start), f"{piece.stop}{_MARK}{piece.rows}"
            counted.append(replace(piece, start=start, stop=stop, rows=max(1, count + piece.rows - requests)))
            starts[piece.part] = stop
        return counted

    def _batches(
        self, slices: Sequence[Slice], numbers: Sequence[int], columns: Sequence[str] | None
    ) -> Iterator[Batch]:
        names = self._names(slices)
        silent = set(numbers)
        for found in self._opened(slices, numbers):
            if found.rows or found.unreadable:
                silent.discard(found.index)
            rows = _table(found.rows, names)
            yield Batch(
                found.index, found.first, rows if columns is None else _selected(rows, columns), found.unreadable
            )
        for index in sorted(silent):  # it has a row all the same: a slice is never empty
            nothing = _table([], names)
            yield Batch(index, 0, nothing if columns is None else _selected(nothing, columns), {_FAILED: 1})

    def _names(self, slices: Sequence[Slice]) -> list[str]:
        """The columns of the inputs, from the first requests of each slice."""
        found = mapped(self._names_of, slices, _AT_ONCE)
        return list(dict.fromkeys(itertools.chain.from_iterable(found)))

    def _names_of(self, piece: Slice) -> Sequence[str]:
        """The columns of a slice's first requests; none where none of them can be read, which reading all tells."""
        try:
            first = next(iter(self._files.read_some([_piece_of_file(piece)], [0])), None)
        except Damaged:
            return ()
        if first is None or not (self.layout == "sagemaker" or _REQUEST in first.rows.schema.names):
            return ()
        rows = itertools.chain.from_iterable(self._requests(first.rows))
        return list(dict.fromkeys(name for row in rows for name in row if name not in OWN))

    def _opened(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[_Opened]:
        """The inputs of each batch of requests; what could not be read keeps a number each."""
        requests = dict.fromkeys(numbers, 0)  # how many of the slice were passed
        inputs = dict(requests)
        for batch in self._files.read_some([_piece_of_file(piece) for piece in slices], list(numbers)):
            index = batch.slice_index
            inputs[index] += batch.first_row - requests[index]
            rows = [row for request in self._requests(batch.rows) for row in request]
            requests[index] = batch.first_row + batch.rows.num_rows
            yield _Opened(index, inputs[index], rows, batch.unreadable, requests[index])
            inputs[index] += len(rows)

    def _requests(self, rows: pa.RecordBatch) -> Iterator[list[Row]]:
        """The inputs of each request, with what was answered."""
        if self.layout == "sagemaker":
            yield from self._captured(rows)
            return
        names = rows.schema.names
        if _REQUEST not in names:
            raise SourceError(
                f"the log of requests has no column {_REQUEST!r}; it has: {', '.join(names)}. Is its layout another "
                f"than {self.layout}?"
            )
        columns = {name: rows.column(name).to_pylist() for name in names if name != _RESPONSE}
        responses = rows.column(_RESPONSE).to_pylist() if _RESPONSE in names else itertools.repeat(None)
        ids, times = (next((columns[name] for name in known if name in columns), None) for known in (_IDS, _TIMES))
        is_ms = "timestamp_ms" in columns
        versions = _versions(columns)
        status = columns.get(_STATUS)
        for place, (request, response) in enumerate(zip(columns[_REQUEST], responses, strict=False)):
            if status is not None and status[place] not in (None, 200, "200"):
                yield []
                continue
            at = None if times is None else times[place]
            about = {
                "id": None if ids is None else ids[place],
                "timestamp": at / 1000 if is_ms and isinstance(at, int | float) else at,
                "model_version": None if versions is None else versions[place],
            }
            yield rows_of(_text(request), _text(response), about)

    def _captured(self, rows: pa.RecordBatch) -> Iterator[list[Row]]:
        def values(name: str) -> Sequence[Json]:
            index = rows.schema.get_field_index(name)
            return [None] * rows.num_rows if index < 0 else rows.column(index).to_pylist()

        sides = [zip(values(f"{side}.data"), values(f"{side}.encoding"), strict=True) for side in _SIDES]
        told = zip(values(f"{_EVENT}.eventId"), values(f"{_EVENT}.inferenceTime"), strict=True)
        for request, response, (key, at) in zip(*sides, told, strict=True):
            about = {"id": key, "timestamp": at, "model_version": None}
            yield rows_of(plain_text(*request), plain_text(*response), about)


def _of_file(position: str) -> str:
    """The position in the file, without how many requests were passed before it."""
    return position.rpartition(_MARK)[0] or position


def _piece_of_file(piece: Slice) -> Slice:
    stop, mark, requests = piece.stop.rpartition(_MARK)
    return replace(piece, start=_of_file(piece.start), stop=stop, rows=int(requests)) if mark else piece


@dataclass(frozen=True)
class _Opened:
    index: int
    first: int
    rows: list[Row]
    unreadable: Mapping[str, int]
    requests: int
    """How many requests of the slice were passed with these."""


def _versions(columns: Mapping[str, list[Any]]) -> list[Any] | None:
    if "model_version" in columns:
        return columns["model_version"]
    metadata = columns.get("request_metadata")
    return None if metadata is None else [dict(each or {}).get("model_version") for each in metadata]


def _text(value: object) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value if isinstance(value, str) else None


def _table(rows: Sequence[Row], names: Sequence[str]) -> pa.RecordBatch:
    """The rows as columns; ``names`` come first, and what no row has is null."""
    columns = {name: as_array([row.get(name) for row in rows]) for name in (*names, *OWN)}
    columns["id"] = pa.array([_as_id(row.get("id")) for row in rows], pa.string())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _taken(piece: Slice, batches: Sequence[Batch], wanted: Sequence[int]) -> pa.Table:
    """Rows of a slice by their numbers in it: those that cannot be read have numbers, too."""
    numbers = (range(batch.first_row, batch.first_row + batch.rows.num_rows) for batch in batches)
    place = {number: at for at, number in enumerate(itertools.chain.from_iterable(numbers))}
    gone = [row for row in wanted if row not in place]
    if gone:
        raise SourceError(
            f"{piece.part}: input {gone[0]} of its slice cannot be read any more. Put back what was there."
        )
    whole = joined([pa.Table.from_batches([batch.rows]) for batch in batches])
    return whole.take(pa.array([place[row] for row in wanted], pa.int64()))


def _as_id(value: Json) -> str | None:
    """An id as text: one file may have numbers, and another the numbers of requests with several inputs (``10#0``)."""
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else json.dumps(value)


def _selected(rows: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    missing = [name for name in columns if name not in rows.schema.names]
    if missing:
        raise SourceError(f"the requests have no column {missing[0]!r}; they have: {', '.join(rows.schema.names)}")
    return rows.select(list(columns))
