"""A database at every schema there ever was, as SQLite files with rows in every table: made once on a machine."""

from __future__ import annotations

import shutil
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import opmon.store
from opmon.store._copying import tables_of
from opmon.store.migrate import REVISIONS, migrate
from tests.made_once import made_once

HERE = Path(__file__).parent
AT = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def filled(revision: str) -> Path:
    """The file of a schema; it is shared, and copied before anything is done to it."""
    sources = [*Path(opmon.store.__path__[0], "migrations").rglob("*.py"), Path(__file__)]
    return made_once("schemas", _make_all, *sources, HERE / "first_schema.tar.xz") / f"{revision}.db"


def _make_all(folder: Path) -> None:
    """The rows that the first release left go through all migrations; each new table gets rows when it comes."""
    with tarfile.open(HERE / "first_schema.tar.xz") as packed:
        (folder / "growing.db").write_bytes(packed.extractfile("./opmon.db").read())  # type: ignore[union-attr]
    for revision in REVISIONS:
        engine = sa.create_engine(f"sqlite:///{folder / 'growing.db'}")
        with engine.begin() as connection:
            migrate(connection, revision)
            for table in tables_of(connection):
                if connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0:
                    connection.execute(table.insert(), [_row(connection, table, k) for k in range(2)])
        engine.dispose()
        shutil.copyfile(folder / "growing.db", folder / f"{revision}.db")
    (folder / "growing.db").unlink()


def _row(connection: sa.Connection, table: sa.Table, place: int) -> dict[str, Any]:
    """A row with a value in every column, which names rows that are there."""
    row = {}
    for column in table.columns:
        if column.foreign_keys:
            parent = next(iter(column.foreign_keys)).column
            row[column.name] = connection.scalars(sa.select(parent).order_by(parent).offset(place).limit(1)).one()
        elif column.name != "id" or not isinstance(column.type, sa.Integer):
            row[column.name] = _value(column, place)
    return row


def _value(column: sa.Column[Any], place: int) -> Any:
    match column.type:
        case sa.DateTime():
            return AT.replace(tzinfo=None)
        case sa.JSON():
            return [] if column.name in ("found", "monitors", "notes") else {"größe": [place, None, 0.5]}
        case sa.Boolean():
            return bool(place)
        case sa.LargeBinary():
            return bytes(range(256))
        case sa.Float():
            return place + 0.1
        case sa.Integer():
            return place + 1
        case _:
            return f"{column.name} '{place}' – ü\n"
