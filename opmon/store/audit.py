"""Who did what, when and from where, in SQL: only added to, and the oldest forgotten after a while."""

from __future__ import annotations

import getpass
import socket
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import Row, audit

MOST = 1_000_000
"""So many entries are kept at most, however young."""
COMMAND = "command"
"""How somebody is known who ran a command on a machine that has the configuration."""
_LONGEST = {"who": 200, "known_by": 20, "origin": 100, "monitor": 200, "about": 300}


class Act(StrEnum):
    """What is noted."""

    SIGNED_IN = "signed in"
    SIGNED_OUT = "signed out"
    REFUSED = "refused"
    ANSWERS_CHANGED = "answers changed"
    ACKNOWLEDGED = "event acknowledged"
    REPLAYED = "event sent again"
    INVITED = "token made"
    REVOKED = "token taken away"
    RELOADED = "configuration reloaded"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that somebody did, or was refused."""

    at: datetime
    act: Act
    who: str
    known_by: str
    origin: str
    monitor: str | None = None
    about: str = ""
    times: int = 1


def this_user() -> str:
    """The name of whoever runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run as a number without a name
        return "somebody"


def of_command(at: datetime, act: Act, about: str, monitor: str | None = None) -> Entry:
    """What the user of this machine did with a command."""
    return Entry(at, act, this_user(), COMMAND, socket.gethostname(), monitor, about)


def note(connection: Connection, *entries: Entry) -> None:
    """Note what was done, in the transaction that does it."""
    if entries:
        connection.execute(audit.insert(), [_values(entry) for entry in entries])


def listing(
    connection: Connection,
    since: datetime | None = None,
    *,
    who: str | None = None,
    act: Act | None = None,
    limit: int | None = None,
) -> Sequence[Entry]:
    """What was noted, newest first."""
    query = sa.select(audit).order_by(audit.c.at.desc(), audit.c.id.desc()).limit(limit)
    if since is not None:
        query = query.where(audit.c.at >= since)
    if who is not None:
        query = query.where(audit.c.who == who)
    if act is not None:
        query = query.where(audit.c.act == act)
    return [_entry(row) for row in connection.execute(query)]


def trim(connection: Connection, before: datetime, most: int = MOST) -> int:
    """Forget what is older, and the oldest of more than ``most`` entries; gives how many those were.

    Of refusals a tenth of that is kept: strangers can cause them, and must not push out what people did.
    """
    gone = connection.execute(audit.delete().where(audit.c.at < before)).rowcount
    for which, room in ((audit.c.act == Act.REFUSED, most // 10), (audit.c.act != Act.REFUSED, most)):
        last = connection.scalar(sa.select(audit.c.id).where(which).order_by(audit.c.id.desc()).offset(room).limit(1))
        if last is not None:
            gone += connection.execute(audit.delete().where(which, audit.c.id <= last)).rowcount
    return gone


def _values(entry: Entry) -> dict[str, object]:
    values = asdict(entry)
    for name, longest in _LONGEST.items():
        if values[name] is not None:
            values[name] = _line(str(values[name]))[:longest]
    return values


def _line(text: str) -> str:
    """A text without what would make two lines of it, or what no database takes."""
    return "".join(each if each.isprintable() else " " for each in text)


def _entry(row: Row) -> Entry:
    return Entry(row.at, Act(row.act), row.who, row.known_by, row.origin, row.monitor, row.about, row.times)


def joined(entries: Iterable[Entry]) -> list[Entry]:
    """The same things done by the same people from the same place as one entry each, with how often."""
    found: dict[tuple[object, ...], list[Entry]] = defaultdict(list)
    for each in entries:
        found[each.act, each.who, each.known_by, each.origin, each.monitor, each.about].append(each)
    return [replace(some[-1], times=sum(each.times for each in some)) for some in found.values()]
