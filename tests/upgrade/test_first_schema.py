"""A database, an MLflow store and a production log as the first release left them, with a round in every state.

``first_schema.tar.xz`` was made by that release; ``expected.json`` is where it came to by itself when all labels were
given. This release takes the same world over and must come to the same.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tarfile
from datetime import datetime
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


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_every_round_of_the_first_schema_goes_on(world: World) -> None:
    database = f"sqlite:///{world.folder / 'opmon.db'}"
    expected = json.loads((HERE / "expected.json").read_text())
    for name in world.changes:
        found = world.finish(name, database)
        assert found["rounds"] == expected[name]["rounds"], name
        for got, told in zip(found["estimates"], expected[name]["estimates"], strict=True):
            assert got == pytest.approx(told), name
