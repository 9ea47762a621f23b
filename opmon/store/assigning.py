"""Tasks are assigned to annotators for a while, in SQL: nobody else is given what one of them has.

A task goes to as many annotators at once as it lacks, and never twice to the same one. An assignment ends when its
annotator speaks of the task, gives it back, or lets it run out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store._among import among
from opmon.store.schema import assignments, handed, labels, rounds, tasks
from opmon.store.states import RoundState

_CLOSED_AT_ONCE = 20
"""So many closed rounds are looked at where no round waits any more."""


def assign(
    connection: Connection,
    annotator: str,
    monitor: str,
    count: int,
    *,
    at: datetime,
    until: datetime,
    provider: str | None = None,
) -> list[int]:
    """The tasks that the annotator is to speak of next, ``count`` at most, theirs ``until`` then, in order.

    Those that they have already come first. What a label provider ``provider`` was handed is left to it.
    """
    mine = _own(connection, annotator, monitor, at)[:count]
    lacking = count - len(mine)
    new: list[int] = []
    if lacking:
        _end(connection, annotator, assignments.c.until <= at)
        for round_id in _rounds(connection, monitor, at):
            new += _take(connection, annotator, round_id, lacking - len(new), at, provider)
            if len(new) == lacking:
                break
    if new:
        rows = [{"task_id": task, "annotator": annotator, "until": until} for task in new]
        connection.execute(assignments.insert(), rows)
    if mine:
        held = _locked(connection, annotator, among(connection, assignments.c.task_id, mine))
        connection.execute(assignments.update().where(*_these(connection, annotator, held)).values(until=until))
    return [*mine, *new]


def passes_over(connection: Connection, annotator: str, monitor: str, at: datetime, provider: str | None) -> bool:
    """Whether tasks are free for an annotator who was assigned none: others have them locked in this moment.

    On SQLite one writes at a time, and none are passed over.
    """
    if connection.dialect.name == "sqlite":
        return False
    free = _free(annotator, at, provider).limit(1)
    rounds_there = _rounds(connection, monitor, at)
    return any(connection.scalar(free.where(tasks.c.round_id == each)) is not None for each in rounds_there)


def give_back(connection: Connection, annotator: str, task_ids: Collection[int]) -> int:
    """End assignments of an annotator; gives how many there were."""
    return _end(connection, annotator, among(connection, assignments.c.task_id, sorted(task_ids)))


def _end(connection: Connection, annotator: str, which: sa.ColumnElement[bool]) -> int:
    found = _locked(connection, annotator, which)
    return (
        connection.execute(assignments.delete().where(*_these(connection, annotator, found))).rowcount if found else 0
    )


def _locked(connection: Connection, annotator: str, which: sa.ColumnElement[bool]) -> list[int]:
    """The tasks of assignments of an annotator, locked; those that an answer ends in this moment are left alone."""
    query = sa.select(assignments.c.task_id).where(assignments.c.annotator == annotator, which)
    return list(connection.scalars(query.with_for_update(skip_locked=True)))


def _these(
    connection: Connection, annotator: str, task_ids: Sequence[int]
) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return assignments.c.annotator == annotator, among(connection, assignments.c.task_id, task_ids)


def _own(connection: Connection, annotator: str, monitor: str, at: datetime) -> list[int]:
    """What the annotator has, and has not spoken of, in the order in which it is met."""
    query = (
        sa.select(tasks.c.id)
        .join(assignments, assignments.c.task_id == tasks.c.id)
        .join(rounds, rounds.c.id == tasks.c.round_id)
        .where(assignments.c.annotator == annotator, assignments.c.until > at, tasks.c.monitor == monitor)
        .where(tasks.c.lacks > 0, rounds.c.state != RoundState.ABANDONED)
        .order_by(rounds.c.urgent.desc(), rounds.c.deadline_at, rounds.c.number, tasks.c.wave, tasks.c.place)
    )
    return list(connection.scalars(query))


def _waiting(connection: Connection, monitor: str, at: datetime) -> list[int]:
    """The rounds of a monitor that annotators are asked about and that are not closed, in the order of their turn."""
    query = _asking(monitor, at).where(rounds.c.state.not_in((RoundState.CLOSED, RoundState.ABANDONED)))
    return list(connection.scalars(query.order_by(rounds.c.urgent.desc(), rounds.c.deadline_at, rounds.c.number)))


def _rounds(connection: Connection, monitor: str, at: datetime) -> Iterator[int]:
    """The rounds with open tasks in the order of their turn; closed ones, which late labels may revise, come last."""
    closed = _asking(monitor, at).where(rounds.c.state == RoundState.CLOSED).order_by(rounds.c.number.desc())
    yield from _waiting(connection, monitor, at)
    yield from list(connection.scalars(closed.limit(_CLOSED_AT_ONCE)))


def _asking(monitor: str, at: datetime) -> sa.Select[int]:
    asks = sa.or_(rounds.c.asks_at.is_(None), rounds.c.asks_at <= at)
    return sa.select(rounds.c.id).where(rounds.c.monitor == monitor, rounds.c.spoken < rounds.c.asked, asks)


def _take(
    connection: Connection, annotator: str, round_id: int, count: int, at: datetime, provider: str | None
) -> list[int]:
    """Free tasks of a round for an annotator, locked.

    On PostgreSQL others may assign at the same time: each passes over what another has locked. What was assigned and
    committed between reading and locking is only seen by a second look, when no one else can have the row any more.
    """
    order = tasks.c.wave, tasks.c.place, tasks.c.id
    query = _free(annotator, at, provider).where(tasks.c.round_id == round_id).order_by(*order).limit(count)
    found: list[int] = []
    while len(found) < count:
        looked = connection.scalars(
            query.where(~among(connection, tasks.c.id, found)).with_for_update(
                skip_locked=True, key_share=True, of=tasks
            )
        ).all()
        if connection.dialect.name == "sqlite":
            return list(looked)  # one writes at a time
        free = _free(annotator, at, provider).where(among(connection, tasks.c.id, list(looked)))
        still = set(connection.scalars(free))
        found += [task for task in looked if task in still][: count - len(found)]
        if len(still) == len(looked):
            break
    return found


def _free(annotator: str, at: datetime, provider: str | None) -> sa.Select[int]:
    """The tasks that an annotator may be given."""
    spoken = sa.exists().where(labels.c.task_id == tasks.c.id, labels.c.annotator == annotator)
    has = sa.select(sa.func.count()).where(
        assignments.c.task_id == tasks.c.id, assignments.c.annotator != annotator, assignments.c.until > at
    )
    mine = sa.exists().where(
        assignments.c.task_id == tasks.c.id, assignments.c.annotator == annotator, assignments.c.until > at
    )
    there = tasks.c.lacks > 0, tasks.c.erased_at.is_(None)
    query = sa.select(tasks.c.id).where(*there, ~spoken, ~mine, has.scalar_subquery() < tasks.c.lacks)
    query = query.where(sa.or_(tasks.c.gold.is_(None), ~_known_gold(annotator)))
    if provider is not None:
        query = query.where(~sa.exists().where(handed.c.task_id == tasks.c.id, handed.c.provider == provider))
    return query


def _known_gold(annotator: str) -> sa.Exists:
    """Whether the annotator has spoken of the same gold input in another round: who remembers it is not measured."""
    other = tasks.alias()
    return sa.exists().where(
        other.c.monitor == tasks.c.monitor,
        other.c.input_id == tasks.c.input_id,
        other.c.gold.is_not(None),
        labels.c.task_id == other.c.id,
        labels.c.annotator == annotator,
    )


def lacking_further(connection: Connection, monitors: Sequence[str]) -> dict[str, int]:
    """By monitor how many drawn tasks somebody has spoken of and a further opinion is asked of, in waiting rounds."""
    said = sa.or_(tasks.c.lacks < tasks.c.needs, sa.exists().where(labels.c.task_id == tasks.c.id))
    query = (
        sa.select(rounds.c.monitor, sa.func.count())
        .join(tasks, tasks.c.round_id == rounds.c.id)
        .where(rounds.c.monitor.in_(monitors), rounds.c.spoken < rounds.c.asked)
        .where(rounds.c.state.not_in((RoundState.CLOSED, RoundState.ABANDONED)))
        .where(tasks.c.lacks > 0, tasks.c.gold.is_(None), sa.or_(tasks.c.needs > 1, tasks.c.confirm > 0), said)
        .group_by(rounds.c.monitor)
    )
    return {row[0]: row[1] for row in connection.execute(query)}
