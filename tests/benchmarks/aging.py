"""A long past for a real monitor: its first round, closed, many times over, in its database, its log and its MLflow."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from opmon.store import positions, schema
from opmon.store.engine import Store

_OF_ROUND = (schema.slices, schema.tasks, schema.labels, schema.estimates, schema.verdicts, schema.seen)
_KEYS = {"round_id": schema.rounds, "task_id": schema.tasks, "estimate_id": schema.estimates}
_CHUNK = 5_000
_SEEN_ROUNDS = 10


def age(store: Store, monitor: str, rounds: int, log: Path) -> None:
    """Let a monitor that has closed one round have closed so many; ``log`` holds the one file that it has read.

    Every round has a file of its own, answered tasks, an estimate with its tally, and verdicts, as the first one has.
    """
    with store.read() as connection:
        first = _rows(connection, schema.rounds, schema.rounds.c.monitor == monitor)
        past = {table: _rows(connection, table, table.c.round_id == first[0]["id"]) for table in _OF_ROUND}
        made = [row["id"] for row in past[schema.estimates]]
        past = {schema.rounds: first, **past}
        past[schema.tallies] = _rows(connection, schema.tallies, schema.tallies.c.estimate_id.in_(made))
        spans = {t: (connection.scalar(sa.select(sa.func.max(t.c.id))) or 0) + 1 for t in past if "id" in t.c}
    files = _files(log, rounds)
    for table, rows in past.items():
        numbers = range(2 if table is not schema.seen else max(2, rounds - _SEEN_ROUNDS), rounds + 1)
        copies = (_copy(table, row, number, rounds, spans, files) for number in numbers for row in rows)
        while some := list(itertools.islice(copies, _CHUNK)):
            with store.write() as connection:
                connection.execute(table.insert(), some)
    with store.write() as connection:
        for start in range(0, len(files), positions.PARTS_A_ROW):
            stop = past[schema.slices][0]["stop"]
            positions.move(connection, monitor, dict.fromkeys(files[start : start + positions.PARTS_A_ROW], stop))
    if not store.is_sqlite:
        with store.write() as connection:
            for table in past:  # as it does by itself, sooner or later; and ids go on behind those that were given
                name = table.name
                if "id" in table.c:
                    last = f"(SELECT max(id) FROM {name})"
                    connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), {last})")
                connection.exec_driver_sql(f"ANALYZE {name}")


def _rows(connection: sa.Connection, table: sa.Table, which: sa.ColumnElement[bool]) -> list[dict[str, Any]]:
    return [dict(row._mapping) for row in connection.execute(sa.select(table).where(which))]


def _files(log: Path, rounds: int) -> list[str]:
    """As many files as rounds, all of them the one that is there."""
    (only,) = log.glob("*.parquet")
    names = [f"{only.stem}-{number:05}.parquet" for number in range(2, rounds + 1)]
    for name in names:
        os.link(only, log / name)
    return names


def _copy(
    table: sa.Table,
    row: dict[str, Any],
    number: int,
    rounds: int,
    spans: dict[sa.Table, int],
    files: Sequence[str],
) -> dict[str, Any]:
    """A row of the first round as that of another; the last one was an hour ago."""
    earlier = timedelta(hours=rounds - number + 1)
    new = {name: value - earlier if isinstance(value, datetime) else value for name, value in row.items()}
    for name, of in {**_KEYS, "id": table}.items():
        if name in new:
            new[name] = row[name] + (number - 1) * spans[of]
    if table is schema.rounds:
        new |= {"number": number, "run_id": row["run_id"] and uuid.UUID(int=number).hex}
    if table is schema.slices:
        new["part"] = files[number - 2]
    return new


@contextmanager
def rows_read(store: Store) -> Iterator[list[int]]:
    """How many rows the database's driver hands over meanwhile, as the only entry of the list."""
    count = [0]

    def of_sqlite(cursor: Any, row: Any) -> Any:
        count[0] += 1
        return row

    def of_psycopg(cursor: Any) -> Callable[[Any], Any]:
        def made(values: Any) -> tuple[Any, ...]:
            count[0] += 1
            return tuple(values)

        return made

    def begins(connection: Any, record: Any, proxy: Any) -> None:
        connection.row_factory = of_sqlite if store.is_sqlite else of_psycopg

    def ends(connection: Any, record: Any) -> None:
        connection.row_factory = plain

    plain: Any = None
    if not store.is_sqlite:
        from psycopg.rows import tuple_row

        plain = tuple_row
    sa.event.listen(store.engine, "checkout", begins)
    sa.event.listen(store.engine, "checkin", ends)
    try:
        yield count
    finally:
        sa.event.remove(store.engine, "checkout", begins)
        sa.event.remove(store.engine, "checkin", ends)
