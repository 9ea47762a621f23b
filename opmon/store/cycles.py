"""How each monitor's last cycle ended: what tells one that works from one that fails every time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store._among import among
from opmon.store.schema import cycles, ticks


@dataclass(frozen=True)
class End:
    """How a cycle that a schedule began ended."""

    at: datetime
    succeeded: bool
    """Whether it did all that it had to do."""
    failed: bool
    """Whether something could not be done; one whose time was over has neither failed nor succeeded."""
    problem: str | None = None
    seconds: float = 0.0
    """How long it took."""


@dataclass(frozen=True)
class Ended:
    """How a monitor's cycles ended: the last one, and all of them."""

    at: datetime
    succeeded_at: datetime | None
    """When a cycle last did all that it had to do."""
    problem: str | None
    """Why no inputs were taken on, where that is so; what keeps single rounds is kept with them."""
    failures: int = 0
    """So many failed running, up to the last one."""
    count: int = 0
    failed: int = 0
    """Of all that were counted."""
    seconds: float = 0.0
    """How long all of them took together."""
    last_seconds: float = 0.0
    killed: int = 0
    """So many processes running have ended in the middle of one, with the last one."""


def record(connection: Connection, monitor: str, end: End) -> None:
    """Keep how a cycle ended."""
    values: dict[str, object] = {"at": end.at, "problem": end.problem, "last_seconds": end.seconds}
    values |= {"succeeded_at": end.at} if end.succeeded else {}
    _keep(connection, monitor, end, values, killed=None)


def cut_short(connection: Connection, monitor: str, at: datetime, by: str) -> None:
    """Keep that the process ``by`` ended in the middle of a cycle: it counts as one that failed."""
    problem = (
        f"{by} ended, or stood still, in the middle of its work on this monitor; it is begun again, and less and less "
        f"often where that goes on. If the system killed it for want of memory, look at what its model takes "
        f"(opmon check), or give opmon more memory"
    )
    end = End(at, succeeded=False, failed=True, problem=problem)
    _keep(connection, monitor, end, {"at": at, "problem": problem}, killed=1)


def _keep(connection: Connection, monitor: str, end: End, values: dict[str, object], killed: int | None) -> None:
    counts = {
        "killed": 0 if killed is None else cycles.c.killed + killed,
        "failures": cycles.c.failures + 1 if end.failed else 0,
        "count": cycles.c.count + 1,
        "failed": cycles.c.failed + int(end.failed),
        "seconds": cycles.c.seconds + end.seconds,
    }
    known = cycles.update().where(cycles.c.monitor == monitor).values(**values, **counts)
    if not connection.execute(known).rowcount:
        first = {"failures": int(end.failed), "count": 1, "failed": int(end.failed), "seconds": end.seconds}
        first |= {"killed": killed or 0}
        connection.execute(cycles.insert().values(monitor=monitor, **values, **first))


def last(connection: Connection, monitors: Collection[str]) -> dict[str, Ended]:
    """By monitor; those that have had none are left out."""
    query = sa.select(cycles).where(among(connection, cycles.c.monitor, list(monitors)))
    found = (dict(row._mapping) for row in connection.execute(query))
    return {row.pop("monitor"): Ended(**row) for row in found}


def cut_off(connection: Connection) -> dict[str, datetime]:
    """The monitors whose last time was begun and has not come to its end, with when that was.

    Somebody is at them, or was until the process ended: a cycle that was killed has no end, and one that was told to
    stop, or whose time was over, has neither failed nor done all it had to.
    """
    done, ended = cycles.c.succeeded_at >= ticks.c.at, cycles.c.at >= ticks.c.at
    failed = sa.and_(ended, cycles.c.failures > 0, cycles.c.killed == 0)
    over = sa.func.coalesce(sa.or_(done, failed), sa.false())
    query = sa.select(ticks).outerjoin(cycles, cycles.c.monitor == ticks.c.monitor).where(sa.not_(over))
    return {row.monitor: row.at for row in connection.execute(query)}
