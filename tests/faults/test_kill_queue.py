"""Kill annotators' calls, imports and prunes at each of their statements: nothing is lost, nothing is there twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from opmon.labels.files import read_labels
from opmon.labels.importing import import_file
from opmon.labels.queue import Answer, LabelQueue
from opmon.store import emptying, erasing, queue, rounds
from opmon.store.engine import Store, open_store
from opmon.store.schema import assignments, attachments, labels, tasks
from opmon.types import Label
from tests.labels.queued import NOW, asked, open_round

PICTURE = {"image": {"base64": "iVBORw0KGgo" + "A" * 401}}
STATEMENTS = 14


def killed_at(statement: int, address: str, work: Callable[[Store], object]) -> bool:
    """Do the work in a process that is killed before its n-th statement; false where it was done before."""
    child = os.fork()
    if not child:
        try:
            store, left = open_store(address), [statement]

            def count(*_: object) -> None:
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

            sa.event.listen(store.engine, "before_cursor_execute", count)
            work(store)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def books(store: Store) -> tuple[int, int, int]:
    """Of the only round: its settled tasks as counted, as they are, and the labels there are."""
    with store.read() as connection:
        settled = connection.scalar(sa.select(sa.func.count()).where(tasks.c.lacks == 0))
        there = connection.scalar(sa.select(sa.func.count()).select_from(labels))
        return rounds.get(connection, "digits", 1).spoken, settled or 0, there or 0


@pytest.fixture
def store(database: str) -> Store:
    store = open_store(database)
    open_round(store, asked(12))
    return store


def test_a_take_is_whole_or_never_was(store: Store, database: str) -> None:
    killed = 0
    for statement in range(1, STATEMENTS):
        annotator = f"ann-{statement}"
        killed += killed_at(statement, database, lambda other: LabelQueue(other).take(annotator, "digits", 2))  # noqa: B023
        with store.read() as connection:
            mine = sa.select(sa.func.count()).where(assignments.c.annotator == annotator)
            assert connection.scalar(mine) in (0, 2)
    assert killed >= 4
    later = LabelQueue(store, {}, lambda: datetime.now(UTC) + timedelta(hours=1))
    taken = later.take("ben", "digits", 50).tasks
    assert len(taken) == 12, "what the dead had taken runs out"


def test_an_answer_is_recorded_once_however_often_it_is_sent(store: Store, database: str) -> None:
    desk = LabelQueue(store)
    killed = 0
    for statement, task in enumerate(desk.take("ann", "digits", 12).tasks, 1):
        answer = Answer(task.key, "7", at=NOW)
        killed += killed_at(statement, database, lambda other: LabelQueue(other).answer("ann", [answer]))  # noqa: B023
        counted, settled, there = books(store)
        assert counted == settled == there
        desk.answer("ann", [answer])
        assert books(store) == (statement, statement, statement)
    assert killed >= 6
    with store.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(assignments)) == 0
        assert rounds.get(connection, "digits", 1).ready


def test_an_import_is_whole_or_never_was(store: Store, database: str, tmp_path: Path) -> None:
    with store.read() as connection:
        keys = [task.key for task in queue.open_tasks(connection)]
    path = tmp_path / "labels.csv"
    path.write_text("task_key,label\n" + "".join(f"{key},7\n" for key in keys))

    def again(other: Store) -> object:
        return import_file(other, read_labels(path), "labels.csv", datetime.now(UTC))

    outcomes = []
    for statement in range(1, STATEMENTS + 6):
        outcomes.append(killed_at(statement, database, again))
        assert books(store) in ((0, 0, 0), (12, 12, 12))
    assert sum(outcomes) >= 6
    again(store)
    assert books(store) == (12, 12, 12)


def test_a_prune_is_whole_or_never_was(database: str) -> None:
    store = open_store(database)
    round_id = open_round(store, asked(3, payload=PICTURE), state="closed", closed_at=NOW)

    def prune(other: Store) -> None:
        with other.write() as connection:
            erasing.erase(connection, round_id, NOW)

    outcomes = []
    for statement in range(1, 9):
        outcomes.append(killed_at(statement, database, prune))
        with store.read() as connection:
            files = connection.scalar(sa.select(sa.func.count()).select_from(attachments))
            left = connection.scalar(sa.select(sa.func.count()).where(tasks.c.erased_at.is_(None)))
        assert files == left
        assert left == (0 if False in outcomes else 3)
    assert outcomes[0]
    assert not outcomes[-1]


def test_labels_of_a_round_are_pruned_whole_or_not_at_all(database: str) -> None:
    store = open_store(database)
    round_id = open_round(store, asked(3, payload=PICTURE), state="closed", closed_at=NOW)
    with store.write() as connection:
        ids = connection.scalars(sa.select(tasks.c.id)).all()
        queue.record(connection, [Label(task, "ann", "7", NOW) for task in ids], NOW)
        rounds.update(connection, round_id, ready=False)

    def prune(other: Store) -> None:
        with other.write() as connection:
            emptying.empty(connection, rounds.get(connection, "digits", 1), NOW, {"a"})

    outcomes = []
    for statement in range(1, 28):
        outcomes.append(killed_at(statement, database, prune))
        with store.read() as connection:
            left = [
                connection.scalar(sa.select(sa.func.count()).select_from(table))
                for table in (tasks, labels, attachments)
            ]
            gone = rounds.get(connection, "digits", 1).labels_pruned_at is not None
        assert left == ([0, 0, 0] if gone else [3, 3, 3])
        assert gone == (False in outcomes)
    assert outcomes[0]
    assert not outcomes[-1]
