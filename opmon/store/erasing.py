"""What annotators saw of inputs is erased after a while, in SQL: payloads of closed rounds, and the bytes beside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store import rounds as kept
from opmon.store import tomographies
from opmon.store.rounds import Round
from opmon.store.schema import attachments, rounds, tasks
from opmon.store.states import RoundState


@dataclass(frozen=True, slots=True)
class Erasable:
    """A closed round of whose tasks annotators still could see what they saw."""

    round: Round
    tasks: int
    bytes: int
    """What their payloads take in the database."""


def erasable(connection: Connection, monitor: str, closed_before: datetime) -> list[Erasable]:
    """The rounds that were closed, or given up, before a moment and hold payloads; oldest first."""
    over = rounds.c.state.in_((RoundState.CLOSED, RoundState.ABANDONED)), rounds.c.closed_at < closed_before
    whole = sa.select(tasks.c.round_id, sa.func.count(), _size(sa.func.length(sa.cast(tasks.c.payload, sa.Text))))
    own = (
        whole.join(rounds, rounds.c.id == tasks.c.round_id)
        .where(rounds.c.monitor == monitor, *over, tasks.c.erased_at.is_(None))
        .group_by(tasks.c.round_id)
    )
    found = {row[0]: (row[1], row[2]) for row in connection.execute(own)}
    beside = (
        sa.select(tasks.c.round_id, _size(sa.func.length(attachments.c.content)))
        .join(tasks, tasks.c.id == attachments.c.task_id)
        .where(tasks.c.round_id.in_(found))
        .group_by(tasks.c.round_id)
    )
    files = {row[0]: row[1] for row in connection.execute(beside)}
    there = kept.in_order(connection, sa.select(rounds).where(rounds.c.id.in_(found)))
    return [Erasable(each, found[each.id][0], found[each.id][1] + files.get(each.id, 0)) for each in there]


def erase(connection: Connection, round_id: int, at: datetime) -> int:
    """Erase what annotators saw of a round's inputs; gives of how many. What they said, and the estimate, stay."""
    own = sa.select(tasks.c.id).where(tasks.c.round_id == round_id)
    connection.execute(attachments.delete().where(attachments.c.task_id.in_(own)))
    tomographies.erase_examples(connection, round_id)
    there = tasks.c.round_id == round_id, tasks.c.erased_at.is_(None)
    return connection.execute(tasks.update().where(*there).values(payload={}, erased_at=at)).rowcount


def _size(length: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(length), 0)
