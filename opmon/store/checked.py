"""What annotators said, to tell how often they err: of gold tasks, and in rounds that asked several, in SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.adjudication import Asked
from opmon.store.queue import as_kept_in, label_of
from opmon.store.schema import labels, rounds, tasks
from opmon.store.states import RoundState
from opmon.types import Label

LATELY = 20
"""So many rounds back: annotators learn, and others come."""
ROUNDS = 5
"""So many of them are read, the newest that asked several annotators."""
GOLD = 2000
"""So many gold tasks, the newest, tell how annotators are today."""


def gold_asked(connection: Connection, monitor: str) -> dict[str, int]:
    """By input how often it was slipped in."""
    query = sa.select(tasks.c.input_id, sa.func.count()).where(tasks.c.monitor == monitor, tasks.c.gold.is_not(None))
    return {row[0]: row[1] for row in connection.execute(query.group_by(tasks.c.input_id))}


def gold_said(connection: Connection, monitor: str, most: int | None = GOLD) -> list[Asked]:
    """The gold tasks of a monitor of which somebody has spoken: the newest ``most`` of them; None: all."""
    said = sa.select(labels.c.task_id).where(labels.c.task_id == tasks.c.id).exists()
    query = (
        sa.select(tasks.c.id)
        .where(tasks.c.monitor == monitor, tasks.c.gold.is_not(None), said)
        .order_by(tasks.c.id.desc())
        .limit(most)
    )
    return _asked(connection, tasks.c.id.in_(query.subquery().select()))


def said_before(connection: Connection, monitor: str, number: int) -> list[Asked]:
    """All drawn tasks, with what was said of them, of the newest rounds before ``number`` that asked several.

    Those with one answer are among them: where second answers follow from the first, the others must not be missing.
    """
    several = sa.select(tasks.c.id).where(
        tasks.c.round_id == rounds.c.id, sa.or_(tasks.c.needs > 1, tasks.c.confirm > 0)
    )
    query = (
        sa.select(rounds.c.id)
        .where(rounds.c.monitor == monitor, rounds.c.number < number, rounds.c.number >= number - LATELY)
        .where(rounds.c.state != RoundState.ABANDONED, several.exists())
        .order_by(rounds.c.number.desc())
        .limit(ROUNDS)
    )
    return _of_rounds(connection, list(connection.scalars(query)))


def said_lately(connection: Connection, monitor: str, count: int) -> list[Asked]:
    """All drawn tasks, with what was said of them, of the newest ``count`` rounds."""
    query = sa.select(rounds.c.id).where(rounds.c.monitor == monitor, rounds.c.state != RoundState.ABANDONED)
    return _of_rounds(connection, list(connection.scalars(query.order_by(rounds.c.number.desc()).limit(count))))


def _of_rounds(connection: Connection, ids: Sequence[int]) -> list[Asked]:
    return _asked(connection, sa.and_(tasks.c.round_id.in_(ids), tasks.c.gold.is_(None))) if ids else []


def _asked(connection: Connection, which: sa.ColumnElement[bool]) -> list[Asked]:
    """These tasks with their labels, without what annotators saw."""
    columns = (tasks.c.id, tasks.c.round_id, tasks.c.position, tasks.c.input_id, tasks.c.prediction, tasks.c.gold)
    found = connection.execute(sa.select(*columns).where(which).order_by(tasks.c.id)).all()
    as_kept = as_kept_in(connection, {row.round_id for row in found})
    said: dict[int, list[Label]] = defaultdict(list)
    given = sa.select(labels).join(tasks, tasks.c.id == labels.c.task_id).where(which).order_by(labels.c.id)
    for row in connection.execute(given):
        said[row.task_id].append(label_of(row, as_kept))
    return [
        Asked(
            row.position,
            row.input_id,
            row.prediction,
            {},
            {},
            row.id,
            tuple(said.get(row.id, ())),
            gold=as_kept(row.round_id, row.gold),
        )
        for row in found
    ]
