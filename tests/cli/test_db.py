"""``opmon db`` as users run it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from opmon.cli import DONE, LATER, WRONG
from opmon.store.migrate import HEAD
from tests.cli.test_commands import opmon
from tests.upgrade.filled import filled


def written(workbench: Any, database: str) -> str:
    return str(workbench.write_yaml(database))


def test_upgrade_tells_from_where_to_where(workbench: Any, tmp_path: Path) -> None:
    config = written(workbench, f"sqlite:///{tmp_path / 'opmon.db'}")
    assert f"got its tables (schema {HEAD})" in opmon("db", "upgrade", "-c", config)[1]
    assert f"was up to date (schema {HEAD})" in opmon("db", "upgrade", "-c", config)[1]
    shutil.copyfile(filled("0011"), tmp_path / "old.db")
    config = written(workbench, f"sqlite:///{tmp_path / 'old.db'}")
    told = opmon("db", "check", "-c", config)[1]
    assert f"the next run brings its tables from 0011 to {HEAD}" in told
    assert f"was brought from schema 0011 to schema {HEAD}" in opmon("db", "upgrade", "-c", config)[1]
    assert json.loads(opmon("db", "upgrade", "--json", "-c", config)[1])["from"] == HEAD


def test_a_monitor_moves_from_sqlite_to_postgresql_in_the_middle_of_a_round(
    workbench: Any, tmp_path: Path, postgres: Callable[[], str]
) -> None:
    """Nothing else is changed but the address, and the round goes on."""
    workbench.write_window()
    config = written(workbench, f"sqlite:///{tmp_path / 'opmon.db'}")
    assert opmon("run", "-c", config)[0] == DONE
    file = str(tmp_path / "copy")
    assert "at schema" in opmon("db", "backup", file, "-c", config)[1]
    there = postgres()
    config = written(workbench, there)
    code, out, _ = opmon("db", "restore", file, "-c", config)
    assert code == DONE
    assert "1 round, 0 labels" in out
    code, _, err = opmon("db", "restore", file, "-c", config)
    assert code == WRONG
    assert "--replace" in err
    monitor = workbench.monitor(there)
    assert workbench.answer(monitor)
    assert monitor.advance().closed == 1


def test_check_tells_what_is_missing(workbench: Any, tmp_path: Path) -> None:
    workbench.write_window()
    config = written(workbench, f"sqlite:///{tmp_path / 'opmon.db'}")
    opmon("run", "-c", config)
    code, out, _ = opmon("db", "check", "-c", config)
    assert code == DONE, out
    assert "1 open round: all files are there" in out
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}")
    shutil.rmtree(tmp_path / yaml.safe_load(Path(config).read_text()).get("state", ".opmon") / "rounds")
    assert opmon("db", "check", "-c", config)[0] == DONE, "MLflow has them, too"
    with monitor.store.read() as connection:
        run = connection.exec_driver_sql("SELECT run_id FROM rounds").scalar()
    monitor.registry.remove_file(run, "drawn-000.parquet")
    code, out, _ = opmon("db", "check", "-c", config)
    assert code == LATER
    assert "1 file is missing that open rounds need: round 1: drawn-000.parquet" in out
