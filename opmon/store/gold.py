"""Gold tasks, in SQL: how often an input of known truth was asked, and what annotators said of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import labels, rounds, tasks


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """What an annotator said last of a gold task; ``said`` is None for a skip."""

    monitor: str
    round: int
    task_id: int
    input_id: str
    truth: str
    annotator: str
    said: str | None
    at: datetime


def times_asked(connection: Connection, monitor: str) -> dict[str, int]:
    """By input how often it was slipped in."""
    query = sa.select(tasks.c.input_id, sa.func.count()).where(tasks.c.monitor == monitor, tasks.c.gold.is_not(None))
    return {row[0]: row[1] for row in connection.execute(query.group_by(tasks.c.input_id))}


def answers(connection: Connection, monitors: Collection[str]) -> list[GoldAnswer]:
    """The last word of every annotator on every gold task of these monitors, in the order in which they came."""
    newest = (
        sa.select(sa.func.max(labels.c.id))
        .join(tasks, tasks.c.id == labels.c.task_id)
        .where(tasks.c.monitor.in_(monitors), tasks.c.gold.is_not(None))
        .group_by(labels.c.task_id, labels.c.annotator)
    )
    query = (
        sa.select(tasks.c.monitor, rounds.c.number, tasks.c.id, tasks.c.input_id, tasks.c.gold)
        .add_columns(labels.c.annotator, labels.c.truth, labels.c.at)
        .join(tasks, tasks.c.id == labels.c.task_id)
        .join(rounds, rounds.c.id == tasks.c.round_id)
        .where(labels.c.id.in_(newest))
        .order_by(labels.c.id)
    )
    return [GoldAnswer(*row) for row in connection.execute(query)]
