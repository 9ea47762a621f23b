"""Commits come in any order: each row is read once all the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from opmon.errors import SourceError
from opmon.sources.sql import settled
from opmon.sources.sql.sql import Sql
from opmon.testing.sources import positions_after

from .conftest import START, Production, column

SETTLE = 10

steps = st.lists(
    st.tuples(st.sampled_from(["begin", "commit", "rollback", "read"]), st.integers(0, 9)), min_size=30, max_size=40
)


class Writers:
    """Transactions that are open side by side, each with rows of its own, and a reader who sees what is committed."""

    def __init__(self, production: Production, source: Sql) -> None:
        production.run("DROP TABLE IF EXISTS requests")
        production.run("CREATE TABLE requests (id SERIAL PRIMARY KEY, at TIMESTAMPTZ)")
        self.engine, self.source = production.engine, source
        self.open: list[tuple[float, sa.Connection, list[int]]] = []
        self.committed: list[int] = []
        self.positions: dict[str, str] = {}
        self.found: list[int] = []
        self.clock = 0.0

    def begin(self, number: int) -> None:
        if len(self.open) >= 4:
            return
        connection = self.engine.connect()
        connection.begin()
        ids = [
            connection.execute(
                sa.text("INSERT INTO requests (at) VALUES (:at) RETURNING id"),
                {"at": START + timedelta(seconds=self.clock)},
            ).scalar_one()
            for _ in range(1 + number % 3)
        ]
        self.open.append((self.clock, connection, ids))

    def end(self, number: int, commit: bool = True) -> None:
        if not self.open:
            return
        _, connection, ids = self.open.pop(number % len(self.open))
        if commit:
            connection.commit()
            self.committed += ids
        else:
            connection.rollback()
        connection.close()

    def read(self, limit: int | None) -> None:
        source = self.source
        slices = source.pending(self.positions, limit)
        again = source.pending(self.positions, limit)  # another process that looks at the same moment
        assert [(one.start, one.stop, one.rows) for one in slices] == [(one.start, one.stop, one.rows) for one in again]
        self.found += column(source, slices)
        self.positions = positions_after(self.positions, slices)

    def pass_(self, seconds: float) -> None:
        self.clock += seconds
        for number in reversed(range(len(self.open))):
            if self.clock - self.open[number][0] >= SETTLE:
                self.end(number)  # nobody takes longer than settle


@pytest.fixture(scope="module")
def log(postgres: Callable[[], str]) -> Any:
    made = Production(postgres())
    yield made
    made.engine.dispose()


@settings(max_examples=12, phases=[Phase.generate])  # to make an example smaller takes minutes
@given(steps)
@pytest.mark.parametrize("cursor", ["at", "id"])
def test_each_row_is_read_once_whatever_the_order_of_commits(
    log: Production, cursor: str, steps: list[tuple[str, int]]
) -> None:
    source = log.source(cursor=cursor, settle=f"{SETTLE}s")
    writers = Writers(log, source)
    patience, now = settled._PATIENCE, settled.Look.now
    settled._PATIENCE = 0.0
    settled.Look.now = lambda look: START + timedelta(seconds=writers.clock)  # type: ignore[method-assign]
    try:
        for what, number in steps:
            writers.pass_(number / 5)
            if what == "begin":
                writers.begin(number)
            elif what == "read":
                writers.read(number or None)
            else:
                writers.end(number, what == "commit")
        while writers.open:
            writers.end(0)
        writers.pass_(2 * SETTLE)
        writers.read(None)
    finally:
        settled._PATIENCE, settled.Look.now = patience, now  # type: ignore[method-assign]
        for _, connection, _ in writers.open:
            connection.close()
    assert sorted(writers.found) == sorted(writers.committed)


def test_a_number_waits_for_those_who_write_and_for_no_longer(on_postgres: Production) -> None:
    on_postgres.requests(5)
    source = on_postgres.source(cursor="id")
    with on_postgres.engine.connect() as late:
        late.execute(sa.text("INSERT INTO requests (id) VALUES (6)"))
        on_postgres.add([7])
        assert source.pending({}) == []
        late.commit()
    assert column(source, source.pending({})) == [1, 2, 3, 4, 5, 6, 7]


def test_numbers_that_nothing_protects_are_refused_with_the_reason(on_postgres: Production) -> None:
    on_postgres.requests(3)
    on_postgres.run("CREATE TABLE own (id INTEGER PRIMARY KEY)")
    for options, why in (
        ({"query": "SELECT * FROM requests"}, "this is a query"),
        ({"table": "own"}, "does not come from a sequence"),
    ):
        with pytest.raises(SourceError, match=rf"{why}.*cursor: \[created_at, id\].*settle: 0s"):
            on_postgres.source(cursor="id", **options).pending({})
        assert on_postgres.source(cursor="id", settle="0s", **options).pending({}) is not None
    on_postgres.run("ALTER SEQUENCE requests_id_seq CACHE 20")
    with pytest.raises(SourceError, match="takes 20 numbers at a time"):
        on_postgres.source(cursor="id").pending({})


def test_partitions_are_watched_too(on_postgres: Production) -> None:
    on_postgres.run("CREATE TABLE requests (id SERIAL, at TIMESTAMPTZ) PARTITION BY RANGE (id)")
    on_postgres.run("CREATE TABLE first_part PARTITION OF requests FOR VALUES FROM (0) TO (1000)")
    on_postgres.run("INSERT INTO requests (at) VALUES (now())")
    with on_postgres.engine.connect() as late:
        late.execute(sa.text("INSERT INTO first_part (at) VALUES (now())"))
        assert on_postgres.source(cursor="id").pending({}) == []
        late.rollback()
    assert [piece.rows for piece in on_postgres.source(cursor="id").pending({})] == [1]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["2026-03-01 12:00:00", "2026-03-01T12:00:01"], "written in different ways"),
        (["2026-03-01 12:00:00", "2026-03-01 12:00:01Z"], "written in different ways"),
        (["2026-03-01 12:00:00+02:00"], "is no time such as"),
        (["yesterday"], "'yesterday' is no time such as"),
        ([1_772_000_000], "is no time such as"),
    ],
)
def test_text_that_is_not_in_the_order_of_time_is_refused(on_sqlite: Production, times: list[Any], said: str) -> None:
    on_sqlite.run("CREATE TABLE requests (at TIMESTAMP)")
    on_sqlite.run("INSERT INTO requests VALUES (:at)", *({"at": at} for at in times))
    with pytest.raises(SourceError, match=said):
        on_sqlite.source().pending({})


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%SZ"])
def test_times_are_text_in_sqlite_however_they_are_written(
    on_sqlite: Production, form: str, clock_at: Callable[[float], None]
) -> None:
    on_sqlite.run("CREATE TABLE requests (id INTEGER PRIMARY KEY, at TEXT)")
    rows = [{"at": (START + timedelta(seconds=k)).strftime(form)} for k in range(10)]
    on_sqlite.run("INSERT INTO requests (at) VALUES (:at)", *rows)
    clock_at(16.5)
    source = on_sqlite.source(settle="10s", since="2026-03-01 12:00:03")
    slices = source.pending(source.begins())
    assert column(source, slices) == ([4, 5, 6] if form.endswith("Z") else [4, 5, 6, 7])  # the second that is not over
    assert slices[0].arrived_at.tzinfo is not None


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [("TEXT", "x", "'at' is string; it must be a time or a whole number"), ("DATE", "2026-03-01", "holds days")],
)
def test_a_cursor_that_is_neither_time_nor_number_is_refused(
    on_postgres: Production, kind: str, value: str, said: str
) -> None:
    on_postgres.run(f"CREATE TABLE requests (at {kind})")
    on_postgres.run("INSERT INTO requests VALUES (:at)", {"at": value})
    with pytest.raises(SourceError, match=said):
        on_postgres.source().pending({})
