"""Files that cannot be read are set aside with the reason, and can be given back; the others go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opmon.cli import group
from opmon.errors import NotFoundError
from opmon.queries.monitors import monitor_view
from opmon.store import rounds, set_aside
from tests.conftest import Workbench

QUARANTINE = {"path": "production", "broken": "quarantine"}


def damaged(path: Path) -> bytes:
    """Breaks a Parquet file for good; gives what was in it."""
    whole = path.read_bytes()
    path.write_bytes(whole[:-60] + b"?" * 52 + whole[-8:])
    return whole


def aside(monitor: Any) -> dict[str, set_aside.SetAside]:
    name = monitor.settings.name
    with monitor.store.read() as connection:
        return {each.part: each for each in set_aside.of_monitors(connection, [name]).get(name, [])}


def count(monitor: Any) -> int:
    with monitor.store.read() as connection:
        return rounds.count(connection, monitor.settings.name)


def test_a_broken_file_is_listed_and_the_others_go_on(workbench: Workbench, database: str) -> None:
    bad = workbench.write_window()
    whole = damaged(bad)
    workbench.write_window()
    monitor = workbench.monitor(database, source=QUARANTINE)
    cycle = monitor.advance()
    assert (cycle.opened, cycle.problems) == (1, [])
    assert list(aside(monitor)) == [bad.name]
    with monitor.store.read() as connection:
        needs = monitor_view(connection, monitor.settings.watch, monitor.clock(), shown=1).needs
    assert any(need.kind == "inputs" and bad.name in need.message for need in needs)
    monitor.advance()
    assert len(aside(monitor)) == 1
    bad.write_bytes(whole)  # mended: read by itself
    assert monitor.advance().opened == 1
    monitor.advance()
    assert aside(monitor) == {}
    with monitor.store.read() as connection:
        assert rounds.get(connection, workbench.name, 2).received == 200


def test_given_back_and_given_up(workbench: Workbench) -> None:
    database = f"sqlite:///{workbench.folder / 'opmon.db'}"
    bad = workbench.write_window()
    damaged(bad)
    yaml = workbench.write_yaml(database, source=QUARANTINE)
    monitor = workbench.monitor(database, source=QUARANTINE)
    monitor.advance()

    def opmon(*arguments: str) -> str:
        done = CliRunner().invoke(group, ["inputs", arguments[0], "-c", str(yaml), *arguments[1:]])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.output

    listed = opmon("list")
    assert bad.name in listed
    assert "Parquet" in listed
    assert f'"part": "{bad.name}"' in opmon("list", "--json")
    assert "read again" in opmon("retry", bad.name)
    assert aside(monitor) == {}
    monitor.advance()
    assert list(aside(monitor)) == [bad.name], "it is as broken as before"
    assert "given up" in opmon("give-up", bad.name)
    monitor.advance()
    assert aside(monitor) == {}
    assert opmon("list") == "nothing is set aside\n"
    with pytest.raises(NotFoundError, match="set aside: nothing"):
        monitor.retry_inputs(bad.name)


def test_a_file_that_was_rewritten_after_rows_of_it_were_read(workbench: Workbench) -> None:
    database = f"sqlite:///{workbench.folder / 'opmon.db'}"
    path = workbench.write_window(300)
    monitor = workbench.monitor(database, source=QUARANTINE)
    assert monitor.advance().opened == 1  # 200 of its 300 rows
    original = path.read_bytes()
    workbench.windows -= 1
    workbench.write_window(300, seed=9)
    monitor.advance()
    assert "written again" in aside(monitor)[path.name].why
    path.write_bytes(original)
    workbench.write_window(100)
    monitor.advance()
    assert count(monitor) == 2, "the rows behind those that were read are taken once the file is back"
    with monitor.store.read() as connection:
        assert rounds.get(connection, workbench.name, 2).received == 200


def test_where_it_stops_nothing_is_set_aside(workbench: Workbench) -> None:
    damaged(workbench.write_window())
    monitor = workbench.monitor(f"sqlite:///{workbench.folder / 'opmon.db'}")
    assert monitor.advance().problems
    assert aside(monitor) == {}
