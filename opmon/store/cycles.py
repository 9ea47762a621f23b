"""How each monitor's last cycle ended: what tells one that works from one that fails every time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import cycles


@dataclass(frozen=True)
class Ended:
    """The end of a monitor's last cycle."""

    at: datetime
    succeeded_at: datetime | None
    """When a cycle last did all that it had to do."""
    problem: str | None
    """Why no inputs were taken on, where that is so; what keeps single rounds is kept with them."""


def record(connection: Connection, monitor: str, at: datetime, *, succeeded: bool, problem: str | None) -> None:
    values = {"at": at, "problem": problem} | ({"succeeded_at": at} if succeeded else {})
    if not connection.execute(cycles.update().where(cycles.c.monitor == monitor).values(**values)).rowcount:
        connection.execute(cycles.insert().values(monitor=monitor, **values))


def last(connection: Connection, monitors: Collection[str]) -> dict[str, Ended]:
    """By monitor; those that have had none are left out."""
    query = sa.select(cycles).where(cycles.c.monitor.in_(monitors))
    return {row.monitor: Ended(row.at, row.succeeded_at, row.problem) for row in connection.execute(query)}
