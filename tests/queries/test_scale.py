"""What a round and a look at a monitor cost does not follow from how old the monitor is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.queries.monitors import monitor_view
from opmon.queries.timeline import SHOWN_ROUNDS
from opmon.store.engine import Store
from tests.benchmarks.aging import age, rows_read
from tests.conftest import Workbench, point_mlflow_at

AGES = {"young": 60, "old": 300}
"""Rounds: more than any window that a round looks back on."""


@pytest.fixture(scope="module")
def monitors(mlflow_uri: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """Two like monitors with their worlds, each just before the round that its age says."""
    point_mlflow_at(mlflow_uri)
    made = {}
    for name, rounds in AGES.items():
        folder = tmp_path_factory.mktemp(name)
        bench = Workbench(folder, mlflow_uri, name, "models:/digits@champion")
        monitor = bench.monitor(f"sqlite:///{folder / 'opmon.db'}", sampler={"type": "srs", "budget": 120})
        live(bench, monitor)
        age(monitor.store, bench.name, rounds - 1, bench.folder / "production")
        bench.windows = 1000
        made[name] = bench, monitor
    return made


def live(bench: Any, monitor: Any) -> None:
    """One round, from its first input to what MLflow is told of it."""
    bench.write_window()
    assert monitor.advance().opened == 1
    bench.answer(monitor)
    assert monitor.advance().closed == 1


@contextmanager
def steps_taken(store: Store) -> Iterator[list[int]]:
    """How many hundreds of instructions of its own SQLite takes: what it looks at, not only what it gives back."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    def begins(driver: Any, record: Any, proxy: Any) -> None:
        driver.set_progress_handler(count, 100)

    def ends(driver: Any, record: Any) -> None:
        driver.set_progress_handler(None, 0)

    sa.event.listen(store.engine, "checkout", begins)
    sa.event.listen(store.engine, "checkin", ends)
    try:
        yield steps
    finally:
        sa.event.remove(store.engine, "checkout", begins)
        sa.event.remove(store.engine, "checkin", ends)


def measured(monitor: Any, act: Callable[[], object]) -> tuple[int, int]:
    with rows_read(monitor.store) as rows, steps_taken(monitor.store) as steps:
        act()
    return rows[0], steps[0]


def test_an_old_monitors_round_costs_what_a_young_ones_does(monitors: dict[str, tuple[Any, Any]]) -> None:
    (rows, steps), (old_rows, old_steps) = (
        measured(monitor, lambda bench=bench, monitor=monitor: live(bench, monitor))  # type: ignore[misc]
        for bench, monitor in monitors.values()
    )
    figure = SHOWN_ROUNDS - AGES["young"]
    assert 500 < rows <= old_rows <= rows + figure + 20, "the figure alone shows more"
    assert old_rows <= 1.2 * rows
    assert old_steps <= 1.2 * steps


def test_a_look_at_an_old_monitor_costs_what_one_at_a_young_one_does(monitors: dict[str, tuple[Any, Any]]) -> None:
    def look(monitor: Any) -> None:
        with monitor.store.read() as connection:
            view = monitor_view(connection, monitor.settings.watch, datetime.now(UTC), shown=5)
        assert view.rounds >= 59

    costs = [measured(monitor, lambda monitor=monitor: look(monitor)) for _, monitor in monitors.values()]  # type: ignore[misc]
    assert costs[0][0] == costs[1][0]
