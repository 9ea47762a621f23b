"""When each monitor's schedule last began, so that a restart knows what it missed, and no time is begun twice."""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import ticks

AHEAD = timedelta(seconds=5)
"""A beginning so far ahead was written by a clock that was wrong."""


def last(connection: Connection) -> dict[str, datetime]:
    """By monitor."""
    return {row.monitor: row.at for row in connection.execute(sa.select(ticks))}


def claim(connection: Connection, monitor: str, at: datetime, after: datetime | None) -> bool:
    """Note that a time of the monitor is begun now; false where somebody has begun it since ``after``.

    To be called under the monitor's lease. ``after`` None: it is begun in any case.
    """
    begun: datetime | None = connection.scalar(sa.select(ticks.c.at).where(ticks.c.monitor == monitor))
    if begun is None:
        connection.execute(ticks.insert().values(monitor=monitor, at=at))
        return True
    if after is not None and after < begun <= at + AHEAD:
        return False
    connection.execute(ticks.update().where(ticks.c.monitor == monitor).values(at=at))
    return True
