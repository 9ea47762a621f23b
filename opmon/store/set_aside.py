"""Parts of each monitor's log that cannot be read, with the reason: left alone until they change or are given back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import NotFoundError
from opmon.store import positions
from opmon.store.schema import set_aside

BEGINNING = "0"
"""The position in a part that was never read."""


@dataclass(frozen=True)
class SetAside:
    """A part that is left alone, since when and why."""

    part: str
    why: str
    at: datetime
    before: str | None
    passing: str


def note(
    connection: Connection, monitor: str, part: str, why: str, at: datetime, before: str | None, passing: str
) -> None:
    """Set a part aside: the monitor stands behind all that is in it."""
    connection.execute(_of(monitor, part))
    values = {"monitor": monitor, "part": part, "why": why, "at": at, "before": before, "passing": passing}
    connection.execute(set_aside.insert().values(**values))
    positions.move(connection, monitor, {part: passing})


def of_monitors(connection: Connection, monitors: Collection[str]) -> Mapping[str, list[SetAside]]:
    """What is set aside of each monitor's log, oldest first."""
    found: dict[str, list[SetAside]] = defaultdict(list)
    query = sa.select(set_aside).where(set_aside.c.monitor.in_(monitors)).order_by(set_aside.c.at, set_aside.c.part)
    for row in connection.execute(query):
        found[row.monitor].append(SetAside(row.part, row.why, row.at, row.before, row.passing))
    return found


def retry(connection: Connection, monitor: str, part: str) -> None:
    """Give a part back: it is read from where the monitor stood in it."""
    known = get(connection, monitor, part)
    connection.execute(_of(monitor, part))
    positions.move(connection, monitor, {part: known.before or BEGINNING})


def forget(connection: Connection, monitor: str, part: str) -> None:
    """Give a part up: what is in it now is never read."""
    get(connection, monitor, part)
    connection.execute(_of(monitor, part))


def get(connection: Connection, monitor: str, part: str) -> SetAside:
    """One part that is set aside, or an error that names those there are."""
    known = of_monitors(connection, [monitor]).get(monitor, [])
    for each in known:
        if each.part == part:
            return each
    have = ", ".join(each.part for each in known[:5]) + (f", … ({len(known)})" if len(known) > 5 else "")
    raise NotFoundError(f"{part!r} is not set aside for {monitor!r}; set aside: {have or 'nothing'}")


def drop_mended(connection: Connection, monitor: str, stands: Mapping[str, str]) -> None:
    """Parts that have changed and were read since are no longer set aside."""
    for each in of_monitors(connection, [monitor]).get(monitor, []):
        if stands.get(each.part) != each.passing:
            connection.execute(_of(monitor, each.part))


def _of(monitor: str, part: str) -> sa.Delete:
    return set_aside.delete().where(set_aside.c.monitor == monitor, set_aside.c.part == part)
