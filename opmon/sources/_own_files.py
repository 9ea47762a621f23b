"""Removing what an input holds from Parquet files that opmon itself wrote: the row and its id stay."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opmon.abc import Erasure
from opmon.errors import SourceError
from opmon.sources._folder import Entry
from opmon.sources._parquet import footer_of
from opmon.sources._position import parse
from opmon.sources.emptying import emptied, is_empty
from opmon.wording import counted

_STAYS = ("id", "timestamp")


def erase(
    folder: Path, input_id: str, positions: Mapping[str, str], needed: Collection[str], *, really: bool
) -> Erasure:
    """Look for the input in all files below a folder, and empty its rows where no round will read them again."""
    found, unreached = [], []
    moved: dict[str, str] = {}
    for path in sorted(folder.rglob("*.parquet")):
        part = path.relative_to(folder).as_posix()
        table = _rows_of(path, input_id)
        if table is None:
            continue
        position = parse(positions.get(part), part)
        mask = _mask(table, input_id)
        if not is_empty(table.filter(mask), _STAYS):
            found.append(f"{path}: {counted(pc.sum(mask).as_py(), 'row')}")
            if part in needed or position.at != position.whole:
                unreached.append(f"{path}: a round that is still open reads it; run this again when it is closed")
                continue
            if really:
                _write(emptied(table, mask.to_numpy(), _STAYS), path)
        now = _entry(path, part)
        after = footer_of(now)
        if really and position.started and position.check != after:  # also where a kill came between file and database
            moved[part] = str(replace(position, size=now.size, modified_ns=now.modified_ns, check=str(after)))
    return Erasure(found, unreached, moved)


def _rows_of(path: Path, input_id: str) -> pa.Table | None:
    """The whole file where the input is in it; its ids alone are read first."""
    try:
        with pq.ParquetFile(path) as file:
            if "id" not in file.schema_arrow.names or not _count(file.read(columns=["id"]), input_id):
                return None
            return file.read()
    except (OSError, pa.ArrowException) as exc:
        raise SourceError(f"{path} cannot be searched: {exc}") from exc


def _mask(table: pa.Table, input_id: str) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(pc.cast(table["id"], pa.string()), input_id), False)


def _count(table: pa.Table, input_id: str) -> int:
    return int(pc.sum(_mask(table, input_id)).as_py() or 0)


def _write(table: pa.Table, path: Path) -> None:
    """Put the table in the place of the file, whole; the file's time stays, by which logs are read in order."""
    stat, partial = path.stat(), path.with_suffix(".partial")
    pq.write_table(table, partial, compression="zstd")
    shutil.copymode(path, partial)
    os.utime(partial, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    partial.replace(path)


def _entry(path: Path, part: str) -> Entry:
    stat = path.stat()
    return Entry(part, str(path), stat.st_size, stat.st_mtime_ns)
