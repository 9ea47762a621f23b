"""What a round and a look at a monitor cost does not follow from how old the monitor is."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from opmon.store.engine import Connection, Store, open_store


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks" / "store_scale.py"
    spec = importlib.util.spec_from_file_location("store_scale", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def store(scale: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Store:
    found = open_store(f"sqlite:///{tmp_path_factory.mktemp('scale') / 'opmon.db'}")
    scale.fill(found, {"other": 200, "old": 400, "young": 20}, labels=1)
    return found


def work_of(store: Store, act: Callable[[Connection], Any]) -> int:
    """How many instructions of its own SQLite takes: what it looks at, not only what it gives back."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    with store.read() as connection:
        driver: Any = connection.connection.dbapi_connection
        driver.set_progress_handler(count, 10)
        try:
            act(connection)
        finally:
            driver.set_progress_handler(None, 0)
    return steps[0]


def test_an_old_monitors_round_costs_what_a_young_ones_does(scale: ModuleType, store: Store) -> None:
    young, old = (work_of(store, lambda c, n=name: scale.judge_and_report(c, n, 20)) for name in ("young", "old"))  # type: ignore[misc]
    assert 0 < old <= 1.2 * young


def test_rows_read_of_a_round_do_not_grow(scale: ModuleType, store: Store) -> None:
    rows = {}
    for name in ("young", "old"):
        with store.read() as connection, scale.counted(connection) as count:
            assert scale.judge_and_report(connection, name, 20) == (20 if name == "young" else 400)
        rows[name] = count[0]
    assert 20 < rows["old"] <= 1.2 * rows["young"]
