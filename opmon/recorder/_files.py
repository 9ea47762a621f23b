"""Files of records: Parquet whose metadata tells what was recorded, written and lost up to it.

The metadata key ``opmon.recorder`` holds JSON: ``writer`` (one process's recorder), ``sequence`` (its files count from
0), ``before`` and ``now`` (the counts when the writer's file before this one was made, and with this one), ``windows``
(of a sample: from, to, seen, kept, weight) and ``closed`` (nothing comes after it). A file without rows,
``….tally.parquet``, tells counts where there is nothing else to write.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from opmon.recorder._buffer import Window
from opmon.recorder._columns import Columns
from opmon.recorder._entries import Entry, Row
from opmon.recorder.counts import KEY, Tally


@dataclass(frozen=True, slots=True)
class File:
    """A file that is made and not put yet."""

    name: str
    data: pa.Buffer
    entries: list[Entry]
    rows: int
    unwritable: int
    windows: int
    tally: Tally
    """The counts that it tells."""


@dataclass(slots=True)
class Series:
    """The files of one writer, one after the other."""

    name: str
    writer: str
    columns: Columns
    sequence: int = 0
    told: Tally | None = None
    """The counts that the last file told."""

    def make(self, entries: list[Entry], tally: Tally, windows: Sequence[Window], closed: bool) -> File:
        """The next file. ``tally`` is how the counts stand; these entries are still among its waiting ones."""
        rows, unwritable = _unpacked(entries)
        tally.written += len(rows)
        tally.dropped["unwritable"] += unwritable
        table = self.columns.table(rows)
        told = {
            "writer": self.writer,
            "name": self.name,
            "sequence": self.sequence,
            "before": (self.told or Tally()).plain(),
            "now": tally.plain(),
            "windows": [_told(window) for window in windows],
            "closed": closed,
        }
        text = [field.name for field in table.schema if pa.types.is_string(field.type) and field.name != "id"]
        sink = pa.BufferOutputStream()
        table = table.replace_schema_metadata({KEY: json.dumps(told).encode()})
        pq.write_table(table, sink, compression="zstd", use_dictionary=text, write_page_checksum=True)
        return File(self._name(bool(rows)), sink.getvalue(), entries, len(rows), unwritable, len(windows), tally)

    def done(self, file: File) -> None:
        """The file is put; the next one goes on from there."""
        self.sequence += 1
        self.told = file.tally

    def _name(self, has_rows: bool) -> str:
        ending = ".parquet" if has_rows else ".tally.parquet"
        return f"{datetime.now(UTC):%Y-%m-%d}/{self.name}-{self.writer}-{self.sequence:08d}{ending}"


def _unpacked(entries: Sequence[Entry]) -> tuple[list[Row], int]:
    """The rows of the entries, and how many cannot be had."""
    rows: list[Row] = []
    unwritable = 0
    for entry in entries:
        try:
            found = [row | {"inclusion": entry.inclusion} for row in entry.unpacked()]
        except Exception:  # noqa: BLE001 - what a framework's objects raise; the others go on
            unwritable += entry.rows
            continue
        rows += found
        unwritable += entry.rows - len(found)
    return rows, unwritable


def _told(window: Window) -> dict[str, object]:
    times = [datetime.fromtimestamp(at / 1e9, UTC).isoformat() for at in (window.began_ns, window.ended_ns)]
    return {"from": times[0], "to": times[1], "seen": window.seen, "kept": len(window.entries), "weight": window.weight}
