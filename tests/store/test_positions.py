"""Where a monitor stands in its log is what it was last told of every part, in few rows."""

from __future__ import annotations

import random

import pytest
import sqlalchemy as sa

from opmon.store import positions, schema
from opmon.store.engine import Store, open_store


@pytest.fixture
def store(database: str) -> Store:
    return open_store(database)


def test_the_newest_position_of_every_part_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "PARTS_A_ROW", 5)
    dice, expected = random.Random(1), {"a": dict[str, str](), "b": dict[str, str]()}
    for number in range(60):
        monitor = dice.choice("ab")
        stops = {f"part-{dice.randrange(20)}": str(number) for _ in range(dice.randrange(1, 4))}
        expected[monitor] |= stops
        with store.write() as connection:
            positions.move(connection, monitor, stops)
    with store.read() as connection:
        assert {monitor: positions.read(connection, monitor) for monitor in "ab"} == expected
        assert positions.read(connection, "nobody") == {}


def test_many_parts_are_few_rows_and_one_that_grows_is_one(store: Store) -> None:
    with store.write() as connection:
        for number in range(1200):
            positions.move(connection, "files", {f"log/day={number:04}.parquet": f"{number}/5@4096-17#0a1b2c3d"})
            positions.move(connection, "one", {"log.csv": f"{number}/?@4096-17#0a1b2c3d"})
        count = sa.select(sa.func.count()).select_from(schema.positions)
        assert connection.scalar(count.where(schema.positions.c.monitor == "files")) == 3
        assert connection.scalar(count.where(schema.positions.c.monitor == "one")) == 1
