"""What no round needs any more is removed."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from opmon.ingest.pruning import Pruning
from opmon.sources.ingest import Ingest
from opmon.store import positions, slices
from opmon.store.engine import open_store
from opmon.store.schema import rounds
from opmon.store.schema import slices as table
from opmon.types import Slice


def test_files_go_when_they_are_old_read_and_no_open_round_needs_them(tmp_path: Path) -> None:
    for name in ("1.parquet", "2.parquet", "3.parquet"):
        pq.write_table(pa.table({"id": [name]}), tmp_path / name)
        os.utime(tmp_path / name, (1e9, 1e9))
    found = Ingest(str(tmp_path)).pending({})
    store = open_store("sqlite://")
    pruning = Pruning(store, {"digits": tmp_path}, keep=3600.0)

    def left() -> list[str]:
        pruning.prune()
        return sorted(path.name for path in tmp_path.iterdir())

    assert left() == ["1.parquet", "2.parquet", "3.parquet"]
    with store.write() as connection:
        positions.move(connection, "digits", {piece.part: piece.stop for piece in found[:2]})
        _open_round(connection, found[1])
    assert left() == ["2.parquet", "3.parquet"]
    with store.write() as connection:
        connection.execute(rounds.update().values(state="closed"))
    assert left() == ["3.parquet"]


def _open_round(connection: sa.Connection, piece: Slice) -> None:
    needed = {column.name for column in rounds.columns if not column.nullable and column.default is None} - {"id"}
    values: dict[str, object] = dict.fromkeys(needed, 1)
    values |= {"monitor": "digits", "state": "opened", "plan": {}, "opened_at": datetime.now(UTC)}
    values |= {"model_name": "digits", "model_version": "1"}
    number = connection.execute(rounds.insert().values(values)).inserted_primary_key
    assert number is not None
    slices.cover(connection, number[0], "digits", [piece], None, 0)
    assert connection.scalar(sa.select(sa.func.count()).select_from(table)) == 1
