"""Writers of one SQLite file: nobody waits much longer than those who came before, and what is locked is told."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from opmon.errors import DatabaseUnavailable
from opmon.store import _turns
from opmon.store._turns import Line, begin
from opmon.store.engine import Store, open_store
from opmon.store.schema import leases
from tests.patience import until


def race(line: Line) -> list[str]:
    """Who comes next: one who has waited, or whoever gave the turn back and wants it again at once."""
    came: list[str] = []

    def wait() -> None:
        with line.turn(30):
            came.append("waited")

    with line.turn(30):
        other = threading.Thread(target=wait)
        other.start()
        until(lambda: len(line._line) == 1, pause=0.001)
    with line.turn(30):
        came.append("again")
    other.join(30)
    return came


def test_who_has_waited_long_enough_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_turns, "PATIENCE", 0)
    assert [race(Line()) for _ in range(50)] == [["waited", "again"]] * 50


def test_who_waits_loses_no_turn_to_the_one_that_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_turns, "PATIENCE", 60)
    for _ in range(50):
        assert sorted(race(Line())) == ["again", "waited"]


def test_one_who_has_waited_in_vain_leaves_the_line() -> None:
    line = Line()
    with line.turn(30):
        late = threading.Thread(target=lambda: line.turn(0.01).__enter__())
        late.start()
        late.join(30)
        assert not line._line
    with line.turn(0):
        assert line._taken


def test_transactions_of_many_threads_are_in_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread comes again as soon as it is done; whoever waits is passed by no one else who came later."""
    monkeypatch.setattr(_turns, "PATIENCE", 0)
    store = open_store(f"sqlite:///{tmp_path / 'opmon.db'}")
    order: list[int] = []
    ready = threading.Barrier(4)

    def write(number: int) -> None:
        ready.wait(30)
        for _ in range(10):
            with store.write() as connection:
                connection.execute(sa.select(leases)).all()
                order.append(number)
                time.sleep(0.002)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(order) == 40
    before = [max(order[:place].count(number) for number in range(4)) for place in range(1, 37)]
    least = [min(order[:place].count(number) for number in range(4)) for place in range(1, 37)]
    assert max(most - fewest for most, fewest in zip(before, least, strict=True)) <= 3


def test_a_file_that_another_process_holds_is_waited_for_and_then_told(tmp_path: Path) -> None:
    store: Store = open_store(f"sqlite:///{tmp_path / 'opmon.db'}?timeout=0.05")
    other = sqlite3.connect(tmp_path / "opmon.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    mine = sqlite3.connect(tmp_path / "opmon.db", isolation_level=None, timeout=0)
    assert not begin(mine, 0.02)
    with pytest.raises(DatabaseUnavailable, match="another process does not let go of it"), store.write():
        pass
    other.execute("COMMIT")
    with store.write() as connection:
        assert connection.execute(sa.select(leases)).all() == []
    mine.close()
    other.close()
