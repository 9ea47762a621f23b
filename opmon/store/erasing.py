"""What was kept long enough is removed, in SQL: what annotators saw, and the note of what of a round is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store import readiness, tomographies
from opmon.store import rounds as kept
from opmon.store.rounds import Round
from opmon.store.schema import assignments, attachments, rounds, tasks
from opmon.store.states import RoundState

PAYLOADS = "payloads"


@dataclass(frozen=True, slots=True)
class Weight:
    """What annotators saw of some tasks takes in the database."""

    tasks: int
    bytes: int


def due(connection: Connection, monitor: str, closed_before: Mapping[str, datetime]) -> dict[int, list[str]]:
    """By the number of a round what of it is to go: each kind has a moment, and goes of rounds closed before it."""
    over = rounds.c.state.in_((RoundState.CLOSED, RoundState.ABANDONED)), rounds.c.monitor == monitor
    if not closed_before:
        return {}
    latest = rounds.c.closed_at < max(closed_before.values())
    query = sa.select(rounds.c.number, rounds.c.closed_at, rounds.c.pruned).where(*over, latest)
    found = {}
    for number, closed_at, gone in connection.execute(query.order_by(rounds.c.number)):
        wanted = [kind for kind, moment in closed_before.items() if closed_at < moment and kind not in (gone or ())]
        if wanted:
            found[number] = wanted
    return found


def weight(connection: Connection, round_id: int) -> Weight:
    """What annotators can still see of a round's tasks."""
    there = tasks.c.round_id == round_id, tasks.c.erased_at.is_(None)
    size = _size(sa.func.length(sa.cast(tasks.c.payload, sa.Text)))
    count, own = connection.execute(sa.select(sa.func.count(), size).where(*there)).one()
    beside = sa.select(_size(sa.func.length(attachments.c.content))).join(tasks, tasks.c.id == attachments.c.task_id)
    return Weight(count, own + (connection.scalar(beside.where(tasks.c.round_id == round_id)) or 0))


def erase(connection: Connection, round_id: int, at: datetime) -> int:
    """Erase what annotators saw of a round's inputs; gives of how many. What they said, and the estimate, stay."""
    return _erase(connection, tasks.c.round_id == round_id, at)


def erase_input(connection: Connection, monitor: str, input_id: str, at: datetime) -> int:
    """Erase what annotators saw of one input; gives of how many tasks. No round waits for answers about it any more."""
    which = sa.and_(tasks.c.monitor == monitor, tasks.c.input_id == input_id)
    erased = _erase(connection, which, at)
    _ask_nobody(connection, which)
    return erased


def note(connection: Connection, round_: Round, kinds: Sequence[str]) -> None:
    """Note what of a round is gone."""
    kept.update(connection, round_.id, pruned=sorted({*(round_.pruned or ()), *kinds}))


@dataclass(frozen=True, slots=True)
class Held:
    """A task that shows an input."""

    task_id: int
    round: int
    position: int
    is_gold: bool
    erased: bool


def tasks_of(connection: Connection, monitor: str, input_id: str) -> list[Held]:
    """The tasks that show an input, or did."""
    query = (
        sa.select(tasks.c.id, rounds.c.number, tasks.c.position, tasks.c.gold, tasks.c.erased_at)
        .join(rounds, rounds.c.id == tasks.c.round_id)
        .where(tasks.c.monitor == monitor, tasks.c.input_id == input_id)
        .order_by(tasks.c.id)
    )
    return [
        Held(row.id, row.number, row.position, row.gold is not None, row.erased_at is not None)
        for row in connection.execute(query)
    ]


def _ask_nobody(connection: Connection, which: sa.ColumnElement[bool]) -> None:
    """Settle tasks that nobody can see any more; who saw one before may still answer it."""
    query = sa.select(tasks.c.id, tasks.c.round_id, tasks.c.gold.is_not(None)).where(which, tasks.c.lacks > 0)
    more: Counter[tuple[int, bool]] = Counter()
    for task_id, round_id, is_gold in connection.execute(query.order_by(tasks.c.id).with_for_update(key_share=True)):
        connection.execute(tasks.update().where(tasks.c.id == task_id).values(lacks=0))
        more[round_id, bool(is_gold)] += 1
    for round_id in sorted({round_id for round_id, _ in more}):
        readiness.count(connection, round_id, more[round_id, False], more[round_id, True])


def _erase(connection: Connection, which: sa.ColumnElement[bool], at: datetime) -> int:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete = ON")  # what is erased is not left in free pages
    own = sa.select(tasks.c.id).where(which)
    connection.execute(attachments.delete().where(attachments.c.task_id.in_(own)))
    connection.execute(assignments.delete().where(assignments.c.task_id.in_(own)))  # it is shown to nobody again
    held = connection.scalars(sa.select(tasks.c.round_id).where(which).distinct()).all()
    for round_id in held:
        tomographies.erase_examples(connection, round_id)
    there = which, tasks.c.erased_at.is_(None)
    return connection.execute(tasks.update().where(*there).values(payload={}, erased_at=at)).rowcount


def _size(length: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(length), 0)
