"""A database, an MLflow store and a production log as the first release left them, with a round in every state.

``first_schema.tar.xz`` was made by that release; ``expected.json`` is where it came to by itself when all labels were
given. This release takes the same world over and must come to the same.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Clock, Workbench

HERE = Path(__file__).parent
PLACES = [
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
    ("logged_models", "artifact_location"),
]


class World:
    """The unpacked world: monitors by name, each with the state that its newest round was left in."""

    def __init__(self, folder: Path) -> None:
        with tarfile.open(HERE / "first_schema.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        known = json.loads((folder / "world.json").read_text())
        self.folder, self.changes, self.truth = folder, known["changes"], known["truth"]
        self.clock = Clock()
        self.clock.now = datetime.fromisoformat(known["now"])
        for name, moment in known["modified_ns"].items():
            os.utime(folder / name, ns=(moment, moment))
        for path in folder.rglob("MLmodel"):
            path.write_text(path.read_text().replace("@FOLDER@", str(folder)))
        self._place_mlflow()

    def _place_mlflow(self) -> None:
        path = self.folder / "mlflow.db"
        with sqlite3.connect(path) as connection:
            for table, column in PLACES:
                connection.execute(
                    f"UPDATE {table} SET {column} = replace({column}, '@FOLDER@', ?)", (str(self.folder),)
                )
        connection.close()
        from mlflow.store.db import utils
        from sqlalchemy import create_engine

        engine = create_engine(f"sqlite:///{path}")
        utils._upgrade_db(engine)
        engine.dispose()

    def bench(self, name: str) -> Any:
        bench = Workbench(self.folder, f"sqlite:///{self.folder / 'mlflow.db'}", name, "models:/digits@champion")
        bench.truth = self.truth
        return bench

    def finish(self, name: str, database: str) -> dict[str, Any]:
        """All labels are given and every round goes on; what a monitor's rounds came to."""
        bench = self.bench(name)
        monitor = bench.monitor(database, self.clock, **self.changes[name])
        for _ in range(6):
            monitor.advance()
            bench.answer(monitor)
        monitor.advance()
        return facts(monitor, name)


def facts(monitor: Any, name: str) -> dict[str, Any]:
    """What users would notice if it were lost, doubled or changed."""
    from opmon.store import revisions, rounds

    with monitor.store.read() as connection:
        newest = sorted(rounds.newest(connection, name, 100), key=lambda round_: round_.number)
        final = revisions.latest_estimates(connection, name)
    return {
        "rounds": [[round_.number, str(round_.state), round_.received, round_.inputs] for round_ in newest],
        "estimates": [[entry.round_number, entry.estimate.value, entry.estimate.n] for entry in final],
    }


def loaded(database: str, file: Path) -> None:
    """Load the rows of the first release's SQLite file into a PostgreSQL database with the first release's tables."""
    import sqlalchemy as sa
    from alembic import command
    from alembic.config import Config

    import opmon.store

    source, target = sa.create_engine(f"sqlite:///{file}"), sa.create_engine(database)
    config = Config()
    config.set_main_option("script_location", f"{opmon.store.__path__[0]}/migrations")
    with source.connect() as old, target.begin() as new:
        (revision,) = old.exec_driver_sql("SELECT version_num FROM alembic_version").one()
        config.attributes["connection"] = new
        command.upgrade(config, revision)
        tables = sa.MetaData()
        tables.reflect(new)
        for table in tables.sorted_tables:
            rows = [dict(row._mapping) for row in old.exec_driver_sql(f"SELECT * FROM {table.name}")]
            if table.name == "alembic_version" or not rows:
                continue
            new.execute(table.insert(), [{name: _typed(table.c[name], row[name]) for name in row} for row in rows])
            if isinstance(table.c.get("id", sa.column("none")).type, sa.Integer):
                last = f"(SELECT max(id) FROM {table.name})"
                new.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {last})")
    source.dispose()
    target.dispose()


def _typed(column: Any, value: Any) -> Any:
    """What SQLite holds as text or a number, as PostgreSQL is to be given it."""
    import sqlalchemy as sa

    match column.type:
        case _ if value is None:
            return None
        case sa.JSON():
            return json.loads(value)
        case sa.DateTime():
            return datetime.fromisoformat(value).replace(tzinfo=UTC)
        case sa.Boolean():
            return bool(value)
        case _:
            return value


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_every_round_of_the_first_schema_goes_on(world: World, empty_database: str) -> None:
    """On SQLite it is that file, on PostgreSQL another database with its rows."""
    if not empty_database.startswith("sqlite"):
        loaded(empty_database, world.folder / "opmon.db")
    expected = json.loads((HERE / "expected.json").read_text())
    for name in world.changes:
        found = world.finish(name, empty_database)
        assert found["rounds"] == expected[name]["rounds"], name
        for got, told in zip(found["estimates"], expected[name]["estimates"], strict=True):
            assert got == pytest.approx(told), name
