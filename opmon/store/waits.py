"""Since when the inputs of each monitor wait for a round."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import waits


def since(connection: Connection, monitor: str, oldest: datetime) -> datetime:
    """Since when inputs wait for a round: kept from one look to the next, for a file that grows is always young."""
    kept: datetime | None = connection.scalar(sa.select(waits.c.since).where(waits.c.monitor == monitor))
    if kept is None:
        connection.execute(waits.insert().values(monitor=monitor, since=oldest))
        return oldest
    return min(kept, oldest)


def is_waiting(connection: Connection, monitor: str) -> bool:
    """Whether inputs of the monitor wait for a round."""
    return connection.scalar(sa.select(waits.c.monitor).where(waits.c.monitor == monitor)) is not None


def end(connection: Connection, monitor: str) -> None:
    """Forget that inputs of the monitor waited: a round has them."""
    connection.execute(waits.delete().where(waits.c.monitor == monitor))
