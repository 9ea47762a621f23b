"""What asking a large database takes: many monitors, long lives, many labels; SQLite and PostgreSQL.

    python tests/benchmarks/store_scale.py [--monitors 200] [--rounds 2000] [--labels 1000000] [--only sqlite]

Prints the time of one pass of "has anybody work?" for all monitors and of ``opmon status`` of all once it is imported;
then, for one real monitor with its model, log and MLflow, what round 20 and the last round take: time of the two cycles
that open and close it, and the rows that opmon's database gives.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from opmon.cli.status import status
from opmon.store import readiness, rounds
from opmon.store.engine import Store, open_store
from tests.benchmarks.aging import age, rows_read
from tests.conftest import Workbench, point_mlflow_at, register_digits
from tests.databases import kinds

EVENTS, PENDING, CYCLES = 20_000, 1_000, 7
AT = "'2026-01-01 00:00:00'"
RULE = {"type": "accuracy_below", "threshold": 0.9, "name": "floor"}


def fill(store: Store, monitors: int, lives: int, answers: int) -> None:
    """The history, in SQL: the last three rounds of each monitor wait for some labels, the others are closed."""
    every, last = monitors * lives, lives - 3
    waits = f"(i % {every}) / {monitors} >= {last}"
    monitor, at = f"'m' || (i % {monitors})", AT if store.is_sqlite else f"timestamptz {AT}"
    of_rounds, of_answers, of_events = (_numbers(store, count) for count in (every, answers, EVENTS))
    done = f"{every} - 3 * {monitors}"
    statements = [
        "INSERT INTO rounds (id, monitor, number, state, model_name, model_version, plan, opened_at, starts_at,"
        f" ends_at, received, inputs, waves, reported) SELECT i + 1, {monitor}, i / {monitors} + 1,"
        f" CASE WHEN {waits} THEN 'labelling' ELSE 'closed' END, 'm', '1', '{{\"since\": \"2026\"}}', {at}, {at}, {at},"
        f" 1000, 1000, 1, 0 FROM {of_rounds}",
        "INSERT INTO tasks (id, monitor, round_id, wave, place, position, input_id, prediction, variables, payload,"
        f" created_at) SELECT i + 1, {monitor}, i % {every} + 1, 0, i / {every}, i / {every}, 'i' || i, '1', '{{}}',"
        f" '{{}}', {at} FROM {of_answers}",
        "INSERT INTO labels (id, task_id, round_id, annotator, truth, at, received_at) SELECT i + 1, i + 1,"
        f" i % {every} + 1, 'ann', '1', {at}, {at} FROM {of_answers} WHERE NOT ({waits}) OR i % 7 = 0",
        "INSERT INTO estimates (id, round_id, revision, quantity, value, low, high, level, standard_error, n,"
        " frame_size, response, method, provisional, notes, failures, labels_seen, made_at) SELECT i + 1, i + 1, 0,"
        f" 'accuracy', 0.95, 0.9, 0.98, 0.95, 0.02, 3, 1000, 1.0, 'srs', false, '[]', 1, 3, {at} FROM {of_rounds}"
        f" WHERE i < {done}",
        "INSERT INTO verdicts (id, round_id, revision, rule, state, message, details) SELECT i + 1, i + 1, 0,"
        f" 'floor', 'ok', 'so it is', '{{}}' FROM {of_rounds} WHERE i < {done}",
        f"INSERT INTO events (id, monitor, round_id, rule, type, body, created_at) SELECT 'e' || i, {monitor},"
        f" i % {monitors} + 1, 'floor', 'opmon.alarm', '{{}}', {at} FROM {of_events}",
        "INSERT INTO deliveries (event_id, action, state, attempts, next_at) SELECT 'e' || i, 'hook',"
        f" CASE WHEN i < {PENDING} THEN 'pending' ELSE 'delivered' END, 0, {at} FROM {of_events}",
        "UPDATE rounds SET asked = (SELECT count(*) FROM tasks WHERE tasks.round_id = rounds.id),"
        " spoken = (SELECT count(*) FROM labels WHERE labels.round_id = rounds.id)",
    ]
    with store.write() as connection:
        if not store.is_sqlite:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        for statement in statements:
            connection.exec_driver_sql(statement if store.is_sqlite else statement.replace("%", "%%"))
        readiness.mark(connection, [monitors * last + 1 + k for k in range(20)])
    if not store.is_sqlite:
        with store.engine.connect() as connection:  # as it does by itself, sooner or later
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM ANALYZE")


def _numbers(store: Store, count: int) -> str:
    if store.is_sqlite:
        return (
            f"(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1}) SELECT i FROM n)"
        )
    return f"(SELECT i FROM generate_series(0, {count - 1}) AS n(i)) AS numbers"


def milliseconds(act: Callable[[], object], times: int = 7) -> str:
    """The usual time, and how much of it this process computed: the machine may have other work."""
    taken, computed = [], []
    for _ in range(times):
        began, own = time.perf_counter(), time.process_time()
        act()
        taken.append(1000 * (time.perf_counter() - began))
        computed.append(1000 * (time.process_time() - own))
    return f"{statistics.median(taken):.1f} ms (computing {statistics.median(computed):.1f})"


def ask(database: str, folder: Path, monitors: int, lives: int, answers: int) -> None:
    """Fill one database and print what asking it takes."""
    store = open_store(database)
    began = time.perf_counter()
    fill(store, monitors, lives, answers)
    kind = "SQLite" if store.is_sqlite else "PostgreSQL"
    took = time.perf_counter() - began
    print(f"{kind}: {monitors} monitors, {lives} rounds each, {answers} tasks; {took:.0f} s to fill")
    monitor = {"model": "models:/m@champion", "source": {"path": "log"}, "columns": {"id": "id"}, "rules": [RULE]}
    config = folder / "opmon.yaml"
    told = {"database": database, "mlflow": {"tracking_uri": "sqlite:///mlflow.db"}}
    config.write_text(yaml.safe_dump(told | {"monitors": {f"m{number}": monitor for number in range(monitors)}}))

    def everybody() -> None:
        with store.read() as connection:
            readiness.monitors_with_work(connection, datetime.now(UTC))

    def of_one() -> None:
        with store.read() as connection:
            rounds.unfinished(connection, "m7")

    def told_of_all(*options: str) -> None:
        with redirect_stdout(io.StringIO()):
            status.main(["-c", str(config), *options], standalone_mode=False)

    print(f"  has anybody work: {milliseconds(everybody)}; the unfinished rounds of one: {milliseconds(of_one)}")
    for options in ((), ("--json",)):
        print(f"  opmon status {' '.join(options)}: {milliseconds(lambda: told_of_all(*options), 3)}")  # noqa: B023
    store.close()


def live(new_database: Callable[[], str], folder: Path, lives: int) -> None:
    """What a round of a real monitor takes, early and late in its life: in turns, for the machine has other work."""
    ages = (20, lives)
    made = [_grown_up(new_database(), folder / f"life-{lived}", lived) for lived in ages]
    taken = [[_round(*one) for one in made] for _ in range(CYCLES)]
    for number, lived in enumerate(ages):
        seconds, own, read = (statistics.median(each) for each in zip(*(turn[number] for turn in taken), strict=True))
        told = f"{seconds:.3f} s (computing {own:.3f}), {read:.0f} rows each"
        print(f"  rounds {lived} to {lived + CYCLES - 1}: {told}")


def _grown_up(database: str, folder: Path, lived: int) -> tuple[Workbench, Any]:
    """A real monitor in a world of its own, just before round ``lived``."""
    folder.mkdir()
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    register_digits(uri)
    point_mlflow_at(uri)
    bench = Workbench(folder, uri, "watch", "models:/digits@champion")
    changes: dict[str, Any] = {"round": {"min_inputs": 1000, "max_inputs": 1000, "max_age": "3650d"}}
    changes |= {"sampler": {"type": "sups", "budget": 100}, "rules": [RULE | {"threshold": 0.5}]}
    monitor = bench.monitor(database, **changes)
    _round(bench, monitor)
    age(monitor.store, "watch", lived - 2, folder / "production")
    bench.windows = 10 * lived
    _round(bench, monitor)  # the process is warm
    return bench, monitor


def _round(bench: Workbench, monitor: Any) -> tuple[float, float, int]:
    """The time of the two cycles that open and close a round, what of it is computing, and the rows they are given."""
    bench.write_window(1000)
    with rows_read(monitor.store) as count:
        began, own = time.perf_counter(), time.process_time()
        opened = monitor.advance()
        taken, computed = time.perf_counter() - began, time.process_time() - own
    bench.answer(monitor, wrong=0.1)
    with rows_read(monitor.store) as more:
        began, own = time.perf_counter(), time.process_time()
        closed = monitor.advance()
        taken, computed = taken + time.perf_counter() - began, computed + time.process_time() - own
    assert (opened.opened, closed.closed) == (1, 1)
    return taken, computed, count[0] + more[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--monitors", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for kind in kinds(Path(temporary), given.only):
            folder = Path(temporary) / kind.name
            folder.mkdir(exist_ok=True)
            _both(kind.new, folder, given)


def _both(new_database: Callable[[], str], folder: Path, given: argparse.Namespace) -> None:
    ask(new_database(), folder, given.monitors, given.rounds, given.labels)
    live(new_database, folder, given.rounds)


if __name__ == "__main__":
    main()
