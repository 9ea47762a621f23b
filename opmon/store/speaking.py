"""Annotators and their tasks, in SQL: which tasks keys name, what an annotator said, how far the work is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store import pruned
from opmon.store._among import among
from opmon.store.queue import task_of
from opmon.store.schema import Query, labels, rounds, tasks
from opmon.store.states import RoundState
from opmon.store.task_keys import key_of, number_in
from opmon.types import Task


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the rounds are that are being labelled.

    What an annotator is shown must not tell them which of their tasks were gold, or second opinions of failures: only
    ``mine`` and ``open`` are for them. Each answer of theirs, whatever its task, moves both by one.
    """

    asked: int
    """The tasks of these rounds."""
    spoken: int
    """Those that are settled."""
    open: int
    """Those that the annotator may still be given; without an annotator, those that are not settled."""
    mine: int
    """Those that the annotator has spoken of."""
    due_at: datetime | None
    """When the first of the rounds stops waiting."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What an annotator said last of a task; ``truth`` is None for a skip."""

    task: Task
    truth: str | None
    why: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Named:
    """A task that a key names, without what annotators see of it, which may be large."""

    id: int
    monitor: str


def tasks_by_id(connection: Connection, task_ids: Collection[int]) -> dict[int, Task]:
    """The tasks by their numbers, as they are handed out."""
    query = _tasks().where(among(connection, tasks.c.id, sorted(task_ids)))
    return {row.id: task_of(row) for row in connection.execute(query)}


def task_by_key(connection: Connection, key: str) -> Task | None:
    """The task that a key names, as it is handed out; None for a key that another database made."""
    number = number_in(key)
    task = None if number is None else tasks_by_id(connection, [number]).get(number)
    return task if task is not None and task.key == key else None


def named(connection: Connection, keys: Sequence[str]) -> dict[str, Named]:
    """The tasks that keys name; one that another database made names none."""
    numbers = {number for key in keys if (number := number_in(key)) is not None}
    query = (
        sa.select(tasks.c.id, tasks.c.monitor, tasks.c.input_id, rounds.c.number, _SINCE)
        .join(rounds, rounds.c.id == tasks.c.round_id)
        .where(among(connection, tasks.c.id, sorted(numbers)))
    )
    known = {
        key_of(row.id, row.monitor, row.number, row.input_id, row.since): Named(row.id, row.monitor)
        for row in connection.execute(query)
    }
    return {key: known[key] for key in keys if key in known}


def pruned_at(connection: Connection, keys: Sequence[str]) -> dict[str, datetime]:
    """When the labels of the tasks that keys name were pruned; of those that were not nothing is said."""
    numbers = {key: number for key in keys if (number := number_in(key)) is not None}
    gone = pruned.of_tasks(connection, set(numbers.values()))
    return {key: max(each.at for each in gone[number]) for key, number in numbers.items() if number in gone}


def said(connection: Connection, annotator: str, monitor: str, last: int) -> list[Spoken]:
    """What an annotator said last of the ``last`` tasks of a monitor that they spoke of last, newest first."""
    newest = sa.func.max(labels.c.id).label("newest")
    query = (
        sa.select(newest)
        .join(tasks, tasks.c.id == labels.c.task_id)
        .where(labels.c.annotator == annotator, tasks.c.monitor == monitor)
        .group_by(labels.c.task_id)
        .order_by(newest.desc())
        .limit(last)
    )
    ids = list(connection.scalars(query))
    found = connection.execute(sa.select(labels).where(among(connection, labels.c.id, ids))).all()
    known = tasks_by_id(connection, [row.task_id for row in found])
    ordered = sorted(found, key=lambda row: -row.id)
    return [Spoken(known[row.task_id], row.truth, row.why, row.at) for row in ordered]


def progress(connection: Connection, monitor: str, at: datetime, annotator: str | None = None) -> Progress:
    """How far the rounds of a monitor are that are being labelled."""
    asks = sa.or_(rounds.c.asks_at.is_(None), rounds.c.asks_at <= at)
    in_labelling = rounds.c.state.in_((RoundState.DRAWN, RoundState.LABELLING))
    gold = sa.case((rounds.c.spoken < rounds.c.asked, rounds.c.gold_asked - rounds.c.gold_spoken), else_=0)
    query = sa.select(rounds.c.id, rounds.c.asked, rounds.c.spoken, gold.label("gold"), rounds.c.deadline_at)
    found = connection.execute(query.where(rounds.c.monitor == monitor, in_labelling, asks)).all()
    waiting = [row.id for row in found]
    asked, spoken = sum(row.asked for row in found), sum(row.spoken for row in found)
    due_at = min((row.deadline_at for row in found if row.deadline_at and row.spoken < row.asked), default=None)
    if annotator is None:
        return Progress(asked, spoken, asked - spoken, 0, due_at)
    own = (
        sa.select(labels.c.task_id, tasks.c.lacks)
        .join(tasks, tasks.c.id == labels.c.task_id)
        .where(labels.c.annotator == annotator, labels.c.round_id.in_(waiting))
        .distinct()
        .subquery()
    )
    still = sa.func.count(sa.case((own.c.lacks > 0, 1)))
    mine, mine_open = connection.execute(sa.select(sa.func.count(), still).select_from(own)).one()
    return Progress(asked, spoken, asked - spoken + sum(row.gold for row in found) - mine_open, mine, due_at)


_SINCE = rounds.c.plan["since"].as_string().label("since")


def _tasks() -> Query:
    return sa.select(tasks, rounds.c.number, rounds.c.classes, rounds.c.deadline_at, _SINCE).join(
        rounds, rounds.c.id == tasks.c.round_id
    )
