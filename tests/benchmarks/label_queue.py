"""The queue under load: imports of many labels, and many annotators at once, on SQLite and on PostgreSQL.

    python tests/benchmarks/label_queue.py --labels 1000000 --clients 20 --seconds 60

Prints how long imports by key and by input take (bar: 30 s for a million), what two concurrent imports of one file
leave, and how many labels a second annotators give who take and answer one task after another (bars: 300 on
PostgreSQL, 100 on SQLite); how many tasks were given twice without cause, how many answers were lost, how many calls
ended in an error such as a deadlock (bars: 0).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from opmon.adjudication import Asked
from opmon.labels.files import read_labels
from opmon.labels.importing import import_file
from opmon.labels.queue import Answer, LabelQueue
from opmon.store import queue, rounds
from opmon.store.engine import Store, open_store
from opmon.store.plans import RoundPlan
from opmon.store.schema import assignments, labels, tasks
from opmon.store.task_keys import key_of
from opmon.types import Slice
from tests.databases import Kind, kinds

MONITOR = "digits"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
CLASSES = [str(number) for number in range(10)]
PORTION = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--ahead", type=int, default=3, help="tasks that a client has at once")
    parser.add_argument("--only", choices=["sqlite", "postgresql"])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds(Path(folder), asked.only):
            if asked.labels:
                imports(kind, Path(folder), asked.labels)
            if asked.seconds:
                annotators(kind.name, kind.new(), asked.clients, asked.seconds, asked.ahead)


def fill(store: Store, count: int) -> int:
    """A round in labelling with so many tasks; gives its number in the database."""
    with store.write(unhurried=True) as connection:
        piece = Slice("a", "0", "1", count, NOW)
        own = {"model_name": "m", "model_version": "1", "plan": RoundPlan(), "opened_at": NOW}
        rounds.add(connection, MONITOR, [piece], received=count, only_version=None, **own)
        round_ = rounds.get(connection, MONITOR, 1)
        for start in range(0, count, PORTION):
            some = range(start, min(start + PORTION, count))
            queue.queue(
                connection, MONITOR, round_.id, 0, [Asked(k, f"input-{k}", "7", {}, {"x": k}) for k in some], NOW
            )
        due = datetime.now(UTC) + timedelta(days=7)
        rounds.update(connection, round_.id, state="labelling", classes=CLASSES, deadline_at=due)
    return round_.id


def keys_of(store: Store) -> list[tuple[str, str]]:
    """The key and the input of every task."""
    with store.read() as connection:
        since = rounds.get(connection, MONITOR, 1).plan.since
        found = connection.execute(sa.select(tasks.c.id, tasks.c.input_id).order_by(tasks.c.id)).all()
    return [(key_of(task_id, MONITOR, 1, input_id, since), input_id) for task_id, input_id in found]


def imports(kind: Kind, folder: Path, count: int) -> None:
    address = kind.new()
    store = open_store(address)
    round_id = fill(store, count)
    known = keys_of(store)
    by_key, by_input = folder / f"{kind.name}-keys.jsonl", folder / f"{kind.name}-inputs.csv"
    with by_key.open("w") as stream:
        stream.writelines(f"{json.dumps({'task_key': key, 'label': '7', 'annotator': 'ann'})}\n" for key, _ in known)
    with by_input.open("w") as stream:
        stream.write("monitor,input_id,label,annotator\n")
        stream.writelines(f"{MONITOR},{name},3,ben\n" for _, name in known)
    for what, path in (("by key (JSONL)", by_key), ("by input (CSV)", by_input), ("by key again", by_key)):
        began, own, servers = time.perf_counter(), time.process_time(), kind.busy()
        found = import_file(store, read_labels(path), str(path), datetime.now(UTC))
        seconds, own, servers = time.perf_counter() - began, time.process_time() - own, kind.busy() - servers
        new = f"{found.new:,} new, {found.unchanged:,} known"
        took = f"{seconds:6.1f} s, {own:.1f} s of them this process's own work, {servers:.1f} s a server's"
        print(f"{kind.name:10}  {count:,} labels {what:15} {took} ({new}; bar 30 s)", flush=True)
    twice = folder / f"{kind.name}-twice.jsonl"
    with twice.open("w") as stream:
        some = known[: max(count // 10, 1)]
        stream.writelines(f"{json.dumps({'task_key': key, 'label': '5', 'annotator': 'cat'})}\n" for key, _ in some)
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        counts = pool.starmap(_import, [(address, twice)] * 2)
    seconds = time.perf_counter() - began
    with store.read() as connection:
        there = connection.scalar(sa.select(sa.func.count()).where(labels.c.annotator == "cat"))
        round_ = rounds.get(connection, MONITOR, 1)
    print(
        f"{kind.name:10}  two imports of one file of {len(some):,} at once: {there:,} labels, new {counts}, "
        f"{seconds:.1f} s"
    )
    assert there == len(some)
    assert (round_.id, round_.spoken) == (round_id, count)


def _import(address: str, path: Path) -> int:
    return import_file(open_store(address), read_labels(path), str(path), datetime.now(UTC)).new


@dataclass
class Worked:
    """What a client did."""

    given: list[tuple[str, str]]
    answered: list[str]
    faults: list[str]
    longest: float


def _client(address: str, annotator: str, until: float, ahead: int, done) -> None:  # type: ignore[no-untyped-def]
    """Take some tasks, answer them one by one, take more; as the labelling page does."""
    desk = LabelQueue(open_store(address))
    given: list[tuple[str, str]] = []
    answered: list[str] = []
    faults: list[str] = []
    longest = 0.0
    while time.time() < until:
        try:
            taken = desk.take(annotator, MONITOR, ahead).tasks
        except Exception as exc:
            faults.append(str(exc))
            continue
        if not taken:
            break
        given += [(annotator, task.key) for task in taken]
        for task in taken:
            began = time.perf_counter()
            try:
                desk.answer(annotator, [Answer(task.key, "7", at=datetime.now(UTC))])
            except Exception as exc:
                faults.append(str(exc))
            else:
                answered.append(task.key)
            longest = max(longest, time.perf_counter() - began)
    done.put(Worked(given, answered, faults, longest))


def annotators(kind: str, address: str, clients: int, seconds: float, ahead: int) -> None:
    store = open_store(address)
    fill(store, int(max(20_000, 1500 * seconds)))
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    ready = context.Barrier(clients)
    workers = [
        context.Process(target=_waiting_client, args=(address, f"ann-{k}", ready, seconds, ahead, done))
        for k in range(clients)
    ]
    for worker in workers:
        worker.start()
    found: list[Worked] = [done.get(timeout=seconds + 300) for _ in workers]
    for worker in workers:
        worker.join()
    answered = [key for each in found for key in each.answered]
    faults = Counter(fault[:80] for each in found for fault in each.faults)
    given = Counter(key for each in found for _, key in set(each.given))
    twice = sum(count - 1 for count in given.values())
    with store.read() as connection:
        there = connection.scalar(sa.select(sa.func.count()).select_from(labels)) or 0
        settled = rounds.get(connection, MONITOR, 1).spoken
        left = connection.scalar(sa.select(sa.func.count()).select_from(assignments)) or 0
    lost, doubled = len(set(answered)) - settled, there - len(answered)
    print(
        f"{kind:10}  {clients} annotators for {seconds:g} s: {len(answered) / seconds:.0f} labels/s "
        f"(bar {300 if kind == 'postgresql' else 100}); given twice {twice}, lost {lost}, doubled {doubled}, "
        f"errors {sum(faults.values())}; slowest answer {max(each.longest for each in found):.2f} s; {left} still taken"
    )
    for fault, count in faults.most_common(3):
        print(f"            {count} × {fault}")


def _waiting_client(address: str, annotator: str, ready, seconds: float, ahead: int, done) -> None:  # type: ignore[no-untyped-def]
    """A client that begins when all of them are there."""
    LabelQueue(open_store(address)).progress(MONITOR)
    ready.wait(300)
    _client(address, annotator, time.time() + seconds, ahead, done)


if __name__ == "__main__":
    main()
