"""The queue of tasks and the labels given to them, in SQL. Labels are only added: a correction is a new label.

Gold tasks, whose truth is known, lie among the others and look like them. Only annotators meet them: no round counts
them, and nothing is estimated from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.adjudication import Asked
from opmon.problems import OF_NUMBERS
from opmon.store import attachments
from opmon.store._among import among, portions
from opmon.store.recording import Recorded, record, record_each, record_possible
from opmon.store.rounds import open_at
from opmon.store.schema import Query, Row, labels, rounds, tasks
from opmon.store.states import RoundState
from opmon.store.task_keys import key_of
from opmon.types import Json, Label, Task
from opmon.values import canonical_number

__all__ = [
    "Recorded",
    "answers",
    "count",
    "open_tasks",
    "payloads",
    "progress",
    "queue",
    "record",
    "record_each",
    "record_possible",
    "select_open",
    "task_of",
    "with_bytes",
]


SHOWN = "model prediction"
"""Under this name annotators see the model's answer, where they are to."""
AsKept: TypeAlias = Callable[[int, str | None], str | None]
"""From a round's id and an answer in it, None for a skip, to that answer as it is kept today."""


def queue(connection: Connection, monitor: str, round_id: int, wave: int, new: Sequence[Asked], at: datetime) -> None:
    """Queue tasks in the order given, which is the order in which annotators meet them."""
    split = [attachments.taken_out(task.payload) for task in new]
    rows = [
        {
            "monitor": monitor,
            "round_id": round_id,
            "wave": wave,
            "place": place,
            "position": task.position,
            "input_id": task.input_id,
            "prediction": task.prediction,
            "variables": dict(task.variables),
            "payload": payload,
            "scores": None if task.scores is None else np.asarray(task.scores, np.float32).tobytes(),
            "created_at": at,
            "input_at": task.input_at,
            "needs": task.needs,
            "confirm": task.confirm,
            "lacks": task.needs,
            "gold": task.gold,
        }
        for place, (task, (payload, _)) in enumerate(zip(new, split, strict=True))
    ]
    connection.execute(tasks.insert(), rows)
    attachments.keep(connection, round_id, {task.position: files for task, (_, files) in zip(new, split, strict=True)})
    gold = sum(task.gold is not None for task in new)
    counts = {"asked": rounds.c.asked + len(new) - gold, "gold_asked": rounds.c.gold_asked + gold}
    connection.execute(rounds.update().where(rounds.c.id == round_id).values(counts))


def open_tasks(
    connection: Connection, monitor: str | None = None, limit: int | None = None, *, at: datetime | None = None
) -> list[Task]:
    """The tasks that are not settled, in queue order: urgent rounds first, then the oldest, closed rounds last.

    A label of a closed round is welcome, but must not keep annotators from the rounds that still wait for them. ``at``
    leaves out those that wait for truth at that moment: whoever hands tasks to annotators gives it.
    """
    closed = rounds.c.state == RoundState.CLOSED
    query = select_open(at).order_by(
        rounds.c.monitor, closed, rounds.c.urgent.desc(), rounds.c.number, tasks.c.wave, tasks.c.place
    )
    if monitor is not None:
        query = query.where(rounds.c.monitor == monitor)
    if limit is not None:
        query = query.limit(limit)
    return [task_of(row) for row in connection.execute(query)]


def select_open(at: datetime | None = None) -> Query:
    """The tasks that are not settled, but for those of rounds that were given up, and those that were erased.

    With a moment ``at``, those that annotators are asked about then: the others wait for truth. Gold tasks are among
    them while their round waits for labels: they are there to measure those who give them.
    """
    asked = sa.true() if at is None else sa.or_(rounds.c.asks_at.is_(None), rounds.c.asks_at <= at)
    since = rounds.c.plan["since"].as_string().label("since")
    waiting = rounds.c.spoken < rounds.c.asked
    return (
        sa.select(tasks, rounds.c.number, rounds.c.classes, rounds.c.deadline_at, since)
        .join(rounds, rounds.c.id == tasks.c.round_id)
        .where(tasks.c.lacks > 0, tasks.c.erased_at.is_(None), waiting, rounds.c.state != RoundState.ABANDONED, asked)
        .where(sa.or_(tasks.c.gold.is_(None), rounds.c.state != RoundState.CLOSED))
    )


def task_of(row: Row) -> Task:
    """A task as it is handed out, from a row of :func:`select_open`."""
    key = key_of(row.id, row.monitor, row.number, row.input_id, row.since)
    payload = attachments.seen(row.payload, row.erased_at)
    shown = payload.get(SHOWN)
    prediction = shown if isinstance(shown, str) else None
    classes = tuple(row.classes or ())
    return Task(
        row.id, row.monitor, row.number, row.input_id, payload, key, classes, row.deadline_at, prediction, row.needs
    )


def with_bytes(connection: Connection, some: Sequence[Task]) -> list[Task]:
    """The tasks with the bytes of their payloads in them, as ``{"base64": …}``, for whoever takes them elsewhere."""
    files = attachments.of_tasks(connection, [task.id for task in some if attachments.has_references(task.payload)])
    return [replace(task, payload=attachments.restored(task.payload, task.id, files)) for task in some]


def answers(connection: Connection, round_id: int, first: int | None = None, *, payloads: bool = True) -> list[Asked]:
    """Every drawn task of a round, in frame order, with its labels, or those that are among the round's ``first``;
    without ``payloads`` the inputs themselves, which may be large, are left out."""
    said: dict[int, list[Label]] = defaultdict(list)
    given = sa.select(labels).where(_of_drawn(round_id)).order_by(labels.c.id).limit(first)
    as_kept = as_kept_in(connection, [round_id])
    for row in connection.execute(given):
        said[row.task_id].append(label_of(row, as_kept))
    columns = [column for column in tasks.c if payloads or column is not tasks.c.payload]
    query = sa.select(*columns).where(tasks.c.round_id == round_id, tasks.c.gold.is_(None)).order_by(tasks.c.position)
    return [
        Asked(
            row.position,
            row.input_id,
            row.prediction,
            row.variables,
            attachments.seen(row.payload, row.erased_at) if payloads else {},
            row.id,
            tuple(said.get(row.id, ())),
            row.input_at,
            row.needs,
            row.confirm,
            row.lacks,
            scores=None if row.scores is None else np.frombuffer(row.scores, np.float32),
        )
        for row in connection.execute(query)
    ]


def as_kept_in(connection: Connection, round_ids: Collection[int]) -> AsKept:
    """How an answer in one of these rounds is kept today: numbers were once kept as typed, so that 12 was not 12.0."""
    query = sa.select(rounds.c.id).where(rounds.c.plan["problem"].as_string().in_(OF_NUMBERS))
    of_numbers = set(connection.scalars(query.where(among(connection, rounds.c.id, sorted(round_ids)))))
    return lambda round_id, said: canonical_number(said) if said is not None and round_id in of_numbers else said


def label_of(row: Row, as_kept: AsKept) -> Label:
    return Label(row.task_id, row.annotator, as_kept(row.round_id, row.truth), row.at, row.why, row.seconds)


def payloads(connection: Connection, task_ids: Sequence[int]) -> dict[int, Mapping[str, Json]]:
    """What annotators saw of these tasks, by their numbers."""
    found: dict[int, Mapping[str, Json]] = {}
    for some in portions(task_ids):
        query = sa.select(tasks.c.id, tasks.c.payload, tasks.c.erased_at).where(among(connection, tasks.c.id, some))
        found |= {row.id: attachments.seen(row.payload, row.erased_at) for row in connection.execute(query)}
    return found


def count(connection: Connection, round_id: int) -> int:
    """How many labels a round has ever received: grows with each new one, whatever order transactions end in."""
    return connection.scalar(sa.select(sa.func.count()).where(_of_drawn(round_id))) or 0


def _of_drawn(round_id: int) -> sa.ColumnElement[bool]:
    """The labels of a round's drawn tasks."""
    return sa.and_(labels.c.round_id == round_id, ~labels.c.gold)


def progress(connection: Connection, monitors: Collection[str], at: datetime) -> dict[str, tuple[int, int, int]]:
    """Per monitor: how many tasks there are, how many are settled, and how many wait for annotators."""
    sums = (sa.func.sum(each) for each in (rounds.c.asked, rounds.c.spoken, open_at(at)))
    query = (
        sa.select(rounds.c.monitor, *sums)
        .where(rounds.c.monitor.in_(monitors), rounds.c.state != RoundState.ABANDONED)
        .group_by(rounds.c.monitor)
    )
    return {row[0]: (row[1], row[2], row[3]) for row in connection.execute(query)}
