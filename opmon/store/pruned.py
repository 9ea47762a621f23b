"""Rounds that have lost their labels, in words: what is said of a task that is not there any more."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import rounds


@dataclass(frozen=True, slots=True)
class Emptied:
    """A round that has lost its labels."""

    monitor: str
    number: int
    at: datetime
    first_task: int | None
    last_task: int | None

    @property
    def name(self) -> str:
        return f"round {self.number} of {self.monitor}"


def words(at: datetime) -> str:
    """What is said wherever labels of a round are looked for that are not there any more."""
    return f"labels were pruned on {at:%Y-%m-%d}"


def of_tasks(connection: Connection, numbers: Collection[int]) -> dict[int, tuple[Emptied, ...]]:
    """The rounds that each of these tasks, which are not there, may have been of; without those that never were."""
    if not numbers:
        return {}
    around = rounds.c.first_task <= max(numbers), rounds.c.last_task >= min(numbers)
    known = list(_read(connection, *around))
    found = {number: tuple(each for each in known if _spans(each, number)) for number in numbers}
    return {number: own for number, own in found.items() if own}


def of_monitors(connection: Connection, monitors: Collection[str]) -> dict[str, list[Emptied]]:
    """By monitor its rounds that have lost their labels, in order."""
    found: dict[str, list[Emptied]] = {}
    for each in _read(connection, rounds.c.monitor.in_(list(monitors))):
        found.setdefault(each.monitor, []).append(each)
    return found


def told(some: Collection[Emptied]) -> str:
    """Of which round a task was, and that no label of it is taken any more.

    >>> told([Emptied("digits", 3, datetime(2026, 11, 19), 1, 9)])
    'round 3 of digits, whose labels were pruned on 2026-11-19: no label of it is taken any more'
    """
    first, *others = sorted(some, key=lambda each: (each.monitor, each.number))
    names = first.name + (
        f" or {others[0].name}" if len(others) == 1 else f" or {len(others)} others" if others else ""
    )
    return f"{names}, whose {words(max(each.at for each in some))}: no label of it is taken any more"


def _spans(each: Emptied, number: int) -> bool:
    return each.first_task is not None and each.last_task is not None and each.first_task <= number <= each.last_task


def _read(connection: Connection, *conditions: sa.ColumnElement[bool]) -> Iterator[Emptied]:
    at = rounds.c.labels_pruned_at
    query = sa.select(rounds.c.monitor, rounds.c.number, at, rounds.c.first_task, rounds.c.last_task)
    for row in connection.execute(
        query.where(at.is_not(None), *conditions).order_by(rounds.c.monitor, rounds.c.number)
    ):
        yield Emptied(row.monitor, row.number, row.labels_pruned_at, row.first_task, row.last_task)
