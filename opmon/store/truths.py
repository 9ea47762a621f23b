"""Truth that arrives by itself, in SQL: the labels it gives to drawn inputs, and what was read of it so far.

A truth is the label of the annotator :data:`~opmon.adjudication.TRUTH`. Recording one again changes nothing, so that
whoever was killed reads the same truths again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.adjudication import TRUTH
from opmon.store import queue
from opmon.store.schema import labels, rounds, tasks, truths
from opmon.types import Label
from opmon.wording import counted, told

_AT_ONCE = 5000
_ROUNDS = 1000
"""Lags of so many rounds before one are looked at."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Known:
    """What is known of an input's truth: what it is, and since when."""

    truth: str
    at: datetime


@dataclass(frozen=True)
class Read:
    """What was read of a monitor's truths so far."""

    read_at: datetime
    known_until: datetime | None = None
    """The time of the latest truth."""
    taken: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    """Why rows could not be taken, and how many."""

    @property
    def left_out(self) -> str:
        """What could not be taken, in words; empty where all could."""
        many = sum(self.refused.values())
        return f"{counted(many, 'row')} could not be taken: {told(Counter(self.refused))}" if many else ""


def last_read(connection: Connection, monitors: Collection[str]) -> dict[str, Read]:
    """What was read so far, of those of the monitors that have read any."""
    rows = connection.execute(sa.select(truths).where(truths.c.monitor.in_(monitors)))
    return {row.monitor: Read(row.read_at, row.known_until, row.taken, row.refused) for row in rows}


def note(connection: Connection, monitor: str, read: Read) -> None:
    """Keep what was read so far."""
    values = {
        "read_at": read.read_at,
        "known_until": read.known_until,
        "taken": read.taken,
        "refused": dict(read.refused),
    }
    if not connection.execute(truths.update().where(truths.c.monitor == monitor).values(**values)).rowcount:
        connection.execute(truths.insert().values(monitor=monitor, **values))


def record_named(
    connection: Connection, monitor: str, known: Mapping[str, Sequence[Known]], now: datetime
) -> list[str]:
    """Label every task of these inputs, of whichever round, with the last truth that is one in it; gives what is wrong
    with those that cannot be."""
    found: list[tuple[int, Sequence[Known]]] = []
    for some in _chunks(list(known)):
        query = sa.select(tasks.c.id, tasks.c.input_id).where(tasks.c.monitor == monitor, tasks.c.input_id.in_(some))
        query = query.where(tasks.c.gold.is_(None))
        found += [(row.id, known[row.input_id]) for row in connection.execute(query)]
    return _record(connection, found, now)


def record_drawn(connection: Connection, round_id: int, known: Mapping[int, Known], now: datetime) -> list[str]:
    """Label the tasks of a round at these places in its frame; gives what is wrong with those that cannot be."""
    if not known:
        return []
    query = sa.select(tasks.c.id, tasks.c.position).where(tasks.c.round_id == round_id)
    found = [(row.id, [known[row.position]]) for row in connection.execute(query) if row.position in known]
    return _record(connection, found, now)


def _record(connection: Connection, found: Sequence[tuple[int, Sequence[Known]]], now: datetime) -> list[str]:
    """What was known later than what is recorded is a correction, and so is another truth of the same moment that was
    read later; what was known before it is old. A truth that is none in a task's round gives way to the one before."""
    latest = _latest(connection, [task for task, _ in found])
    problems: list[str] = []
    while found:
        last = [(task, known) for task, known in found if known and _is_news(latest.get(task), known[-1].at)]
        given = [Label(task, TRUTH, known[-1].truth, known[-1].at) for task, known in last]
        wrong = queue.record_each(connection, given, now)[1]
        problems += [problem for problem in wrong if problem is not None]
        found = [(task, known[:-1]) for (task, known), problem in zip(last, wrong, strict=True) if problem is not None]
    return problems


def _is_news(latest: datetime | None, at: datetime) -> bool:
    return latest is None or latest <= at


def _latest(connection: Connection, task_ids: Sequence[int]) -> dict[int, datetime]:
    """The time of the newest truth that is recorded of each task."""
    found: dict[int, datetime] = {}
    for some in _chunks(task_ids):
        query = sa.select(labels.c.task_id, labels.c.at).where(labels.c.task_id.in_(some), labels.c.annotator == TRUTH)
        for row in connection.execute(query):
            found[row.task_id] = max(row.at, found.get(row.task_id, row.at))
    return found


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE))


@dataclass(frozen=True)
class Arrival:
    """When the truth of a drawn input came, and what it is."""

    truth: str
    at: datetime
    input_at: datetime


def arrivals_before(connection: Connection, monitor: str, number: int, limit: int) -> list[Arrival]:
    """The truths of inputs drawn in the rounds before this one that have come, of about the last ``limit`` of them."""
    query = (
        _arrivals()
        .where(rounds.c.monitor == monitor, rounds.c.number < number, rounds.c.number >= number - _ROUNDS)
        .order_by(labels.c.id.desc())
        .limit(limit)
    )
    return _once(connection.execute(query))


@dataclass(frozen=True)
class Lags:
    """How soon the truths of drawn inputs came."""

    arrived: int
    """So many have come."""
    median_hours: float | None
    """After so many hours the half of them had."""
    ninety_hours: float | None
    """After so many nine in ten had."""

    @classmethod
    def of(cls, hours: Sequence[float]) -> Lags:
        """From the lags in hours.

        >>> Lags.of([1.0, 2.0, 30.0])
        Lags(arrived=3, median_hours=2.0, ninety_hours=30.0)
        """
        ordered = sorted(hours)
        if not ordered:
            return cls(0, None, None)
        return cls(len(ordered), *(ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.9)))


def lags_of(connection: Connection, round_ids: Collection[int]) -> dict[int, Lags]:
    """How soon the truths of the drawn inputs of each of these rounds came, where any have."""
    found: dict[int, Lags] = {}
    by_round: dict[int, list[sa.Row[tuple[object, ...]]]] = {}
    for some in _chunks(list(round_ids)):
        for row in connection.execute(_arrivals().where(labels.c.round_id.in_(some)).order_by(labels.c.id.desc())):
            by_round.setdefault(row.round_id, []).append(row)
    for round_id, rows in by_round.items():
        seconds = [(each.at - each.input_at).total_seconds() for each in _once(rows)]
        found[round_id] = Lags.of([max(each, 0.0) / 3600 for each in seconds])
    return found


def _arrivals() -> sa.Select[tuple[object, ...]]:
    columns = (labels.c.task_id, labels.c.round_id, labels.c.truth, labels.c.at, tasks.c.input_at)
    return (
        sa.select(*columns, rounds.c.ends_at, rounds.c.opened_at)
        .join(tasks, tasks.c.id == labels.c.task_id)
        .join(rounds, rounds.c.id == labels.c.round_id)
        .where(labels.c.annotator == TRUTH)
    )


def _once(rows: Iterable[sa.Row[tuple[object, ...]]]) -> list[Arrival]:
    """Newest labels first: of one that was corrected what it became, and when it first came."""
    found: dict[int, Arrival] = {}
    for row in rows:
        known = found.get(row.task_id)
        if known is None:
            found[row.task_id] = Arrival(row.truth, row.at, row.input_at or row.ends_at or row.opened_at)
        else:
            found[row.task_id] = replace(known, at=min(known.at, row.at))
    return list(found.values())
