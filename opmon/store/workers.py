"""The processes that work on monitors: that they are there, and what they have long been at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import workers

ALIVE = timedelta(seconds=60)
"""A process that has not said that it is there for so long is gone, or stands still."""
_KEPT = timedelta(days=1)


@dataclass(frozen=True)
class Busy:
    """A monitor that a process has long been at."""

    stage: str
    since: datetime
    """When the cycle began."""
    moved: datetime
    """When it last got on."""


@dataclass(frozen=True)
class Worker:
    """One process, as it said of itself."""

    id: str
    process: str
    """Where it runs, for people."""
    role: str
    version: str
    started_at: datetime
    seen_at: datetime
    busy: dict[str, Busy]
    breakers: dict[str, float]
    """The targets that it leaves alone, and for how many seconds still."""

    def is_alive(self, now: datetime) -> bool:
        """Whether it has said that it is there of late."""
        return self.seen_at > now - ALIVE


def say(connection: Connection, worker: Worker) -> None:
    """Say that a process is there; those that have said nothing for a day are forgotten."""
    values: dict[str, Any] = {
        **{name: getattr(worker, name) for name in ("process", "role", "version", "started_at", "seen_at", "breakers")},
        "busy": {
            name: [each.stage, each.since.isoformat(), each.moved.isoformat()] for name, each in worker.busy.items()
        },
    }
    if not connection.execute(workers.update().where(workers.c.id == worker.id).values(**values)).rowcount:
        connection.execute(workers.delete().where(workers.c.seen_at < worker.seen_at - _KEPT))
        connection.execute(workers.insert().values(id=worker.id, **values))


def leave(connection: Connection, worker_id: str) -> None:
    """Forget a process that ends in order."""
    connection.execute(workers.delete().where(workers.c.id == worker_id))


def known(connection: Connection) -> list[Worker]:
    """All that are not forgotten, whoever was seen last first."""
    found = connection.execute(sa.select(workers).order_by(workers.c.seen_at.desc()))
    return [
        Worker(**{**row._mapping, "busy": {name: _busy(*told) for name, told in row.busy.items()}}) for row in found
    ]


def running(connection: Connection, now: datetime) -> list[str]:
    """Where processes run that have said of late that they are there; of tables of older schemas, too."""
    there = sa.select(workers.c.process).where(workers.c.seen_at > now - ALIVE, workers.c.seen_at <= now + ALIVE)
    return list(connection.scalars(there.order_by(workers.c.process)))


def _busy(stage: str, since: str, moved: str) -> Busy:
    return Busy(stage, datetime.fromisoformat(since), datetime.fromisoformat(moved))
