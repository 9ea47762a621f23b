"""When each monitor's schedule last began, so that a restart knows what it missed."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import ticks


def last(connection: Connection) -> dict[str, datetime]:
    """By monitor."""
    return {row.monitor: row.at for row in connection.execute(sa.select(ticks))}


def record(connection: Connection, monitor: str, at: datetime) -> None:
    changed = connection.execute(ticks.update().where(ticks.c.monitor == monitor).values(at=at)).rowcount
    if not changed:
        connection.execute(ticks.insert().values(monitor=monitor, at=at))
