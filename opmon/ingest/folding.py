"""From segments to rows: requests meet their responses, and each monitor gets a file of its own."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opmon.ingest.columns import Columns, Kind, Row
from opmon.ingest.event import Kept
from opmon.ingest.event import Kind as EventKind
from opmon.ingest.journal import Journal
from opmon.ingest.segments import Segment, sync
from opmon.private import private_folder
from opmon.sources.ingest import LOST
from opmon.sources.nested import as_json
from opmon.sources.requests.payloads import rows_of
from opmon.tables import joined
from opmon.types import Json

log = logging.getLogger(__name__)

NO_REQUEST = "a response came, but not its request"
DAMAGED = "an event that was kept is damaged"
NO_ROW = "an event came of which no row can be made"
_AT_ONCE = 5000
_ROW_GROUP = 50_000

Answers: TypeAlias = dict[int, tuple[Segment, int]]
"""Where the response to each request stands, by the request's key."""


@dataclass
class _Stream:
    """What a segment holds for one monitor."""

    columns: Columns
    tables: list[pa.Table] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0

    def add(self, rows: list[Row]) -> None:
        self.rows += rows
        if len(self.rows) >= _AT_ONCE:
            self.pack()

    def add_of(self, event: Kept, response: str | None) -> None:
        """Take in the rows of a row or a request; one of which there can be none costs itself, and nothing else."""
        try:
            rows = [_own_row(event)] if event.kind is EventKind.ROW else _rows(event, response)
        except (MemoryError, OSError):
            raise
        except Exception as exc:  # noqa: BLE001 - strangers wrote it; all that came with it would wait for ever
            log.warning("%s: no row can be made of the event %r: %s", event.stream, event.id, exc)
            self.lost[NO_ROW] += 1
            return
        self.add(rows)

    def pack(self) -> None:
        """Keep the rows in less room."""
        if self.rows:
            self.tables.append(self.columns.table(self.rows))
            self.rows = []

    def table(self) -> pa.Table | None:
        """All of it; None where there is nothing to tell."""
        self.pack()
        if not self.tables and not self.lost:
            return None
        table = joined(self.tables) if self.tables else pa.table({"id": pa.array([], pa.string())})
        return table.replace_schema_metadata({LOST: json.dumps(self.lost).encode()})


@dataclass
class Folding:
    """Makes files of segments that were closed ``settle`` seconds ago."""

    journal: Journal
    folders: Mapping[str, Path]
    """Where the rows of each monitor are kept."""
    settle: float
    _columns: dict[str, Columns] = field(default_factory=dict)

    def fold(self) -> None:
        """Make files of all segments whose responses have had their time, and remove those that are done with."""
        now = self.journal.monotonic()
        for segment in self.journal.segments.unread():
            closed = self.journal.closed.get(segment.number)
            if closed is not None and closed[1] + self.settle <= now:
                self._fold(segment)
        self._remove()

    def _fold(self, segment: Segment) -> None:
        folders = self.journal.segments
        keys, requests = set[int](), set[int]()
        for _, line in segment.lines():
            event = Kept.of_line(line)
            if event is not None and event.key:
                keys.add(event.key)
                if event.kind is EventKind.REQUEST:
                    requests.add(event.key)
        answers = self._answers(segment, requests)
        name = f"{segment.number:012}-{folders.name}.parquet"
        streams = self._streams(segment, answers)
        folders.keep_keys(segment.number, np.fromiter(keys, np.uint64, len(keys)), self.journal.known.most)
        for stream, found in streams.items():
            table = found.table()
            if table is not None:
                write(table, self._folder(stream) / name)
            self._tell(stream, found)
        folders.mark_read(segment)

    def _streams(self, segment: Segment, answers: Answers) -> dict[str, _Stream]:
        """The rows of each monitor in a segment."""
        streams: dict[str, _Stream] = {}
        responses: list[Kept] = []
        damaged = 0
        for _, line in segment.lines():
            event = Kept.of_line(line)
            if event is None:
                damaged += 1
                continue
            if event.stream not in streams:
                streams[event.stream] = _Stream(self._columns_of(event.stream))
            found = streams[event.stream]
            if event.kind is EventKind.RESPONSE:
                responses.append(Kept(event.kind, event.stream, event.key, event.of, "", "", ""))
                continue
            response = _response(answers.get(event.key)) if event.kind is EventKind.REQUEST else None
            found.unanswered += event.kind is EventKind.REQUEST and response is None
            found.add_of(event, response)
        known = self.journal.known.among([event.of for event in responses])
        for event in responses:
            if event.of not in known:
                streams[event.stream].lost[NO_REQUEST] += 1
        if damaged:
            log.warning("%s: %d events are damaged", segment.path, damaged)
            for found in list(streams.values())[:1]:
                found.lost[DAMAGED] += damaged
        return streams

    def _answers(self, segment: Segment, requests: set[int]) -> Answers:
        """Where the responses to these requests stand: with them, in the segments after, or just before."""
        folder = self.journal.segments
        later = [other for other in folder.unread() if other.number > segment.number]
        answers: Answers = {}
        for some in [*folder.read(), segment, *later] if requests else []:
            for place, line in some.lines(EventKind.RESPONSE):
                event = Kept.of_line(line)
                if event is not None and event.of in requests:
                    answers.setdefault(event.of, (some, place))
        return answers

    def _remove(self) -> None:
        """Remove segments whose responses no request can wait for any more."""
        unread = {segment.number for segment in self.journal.segments.unread()}
        closed = self.journal.closed
        began = [closed[number][0] for number in unread if number in closed] + [self.journal.open_since()]
        for segment in self.journal.segments.read():
            if segment.number not in closed or min(began) > closed[segment.number][1] + self.settle:
                segment.path.unlink(missing_ok=True)
                closed.pop(segment.number, None)

    def _folder(self, stream: str) -> Path:
        return self.folders.get(stream) or self.journal.segments.folder.parent / stream / "inputs"

    def _columns_of(self, stream: str) -> Columns:
        """The columns of a monitor as its newest file has them."""
        if stream not in self._columns:
            found = Columns()
            for path in sorted(self._folder(stream).glob("*.parquet"), reverse=True)[:5]:
                kinds = {column.name: Kind.of_type(column.type) for column in pq.read_schema(path)}
                found.kinds = {name: kind for name, kind in kinds.items() if kind is not None} | found.kinds
            self._columns[stream] = found
        return self._columns[stream]

    def _tell(self, stream: str, found: _Stream) -> None:
        columns = found.columns
        if found.unanswered:
            log.info("%s: %d requests had no response in time", stream, found.unanswered)
        if found.lost:
            log.warning("%s: %s", stream, dict(found.lost))
        if columns.misfits or columns.left_out:
            log.warning(
                "%s: values of another type than their column had first are missing now: %s%s",
                stream,
                columns.misfits,
                f"; {columns.left_out} columns too many were left out" if columns.left_out else "",
            )
            columns.misfits, columns.left_out = {}, 0


def write(table: pa.Table, path: Path) -> None:
    """Let there be a file with these rows, whole at once; one that is there stays, for it may have been read."""
    if path.exists():
        return
    private_folder(path.parent.parent)
    private_folder(path.parent)
    new = path.with_name(f".{path.name}.tmp")
    try:
        pq.write_table(table, new, row_group_size=_ROW_GROUP, compression="zstd")
        new.chmod(0o600)
        sync(new)
        new.rename(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    sync(path.parent)


def _own_row(event: Kept) -> Row:
    row: dict[str, Json] = json.loads(event.body)
    return {"timestamp": event.at, **row, "id": event.id}


def _rows(event: Kept, response: str | None) -> list[Row]:
    answer = as_json(response)
    version = answer.get("model_version") if isinstance(answer, Mapping) else None
    version = version if isinstance(version, str) else None
    return [*rows_of(event.body, response, {"id": event.id, "timestamp": event.at, "model_version": version})]


def _response(place: tuple[Segment, int] | None) -> str | None:
    if place is None:
        return None
    event = place[0].event_at(place[1])
    return None if event is None else event.body
