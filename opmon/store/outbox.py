"""Events wait here from the transaction of their verdict until every action has taken them.

An event and one delivery per configured action are written together with the verdict, so neither exists without the
other. :mod:`delivery` tries them. What no retry can help is kept, shown by ``opmon events`` and can be replayed.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import NotFoundError
from opmon.store._among import listed
from opmon.store.schema import deliveries, events
from opmon.types import Document

log = logging.getLogger(__name__)

ALARM, RECOVERED, CHANGED, ADVICE = "opmon.alarm", "opmon.recovered", "opmon.changed", "opmon.advice"
"""The types of events. An alarm ends with a recovery, or because its rule was changed, which is none. Advice is kept
and shown; no action hears of it."""
SILENCE = "monitor_silent"
"""What stands for a rule in the events of the watchdog."""
SILENT, HEARD = "opmon.silent", "opmon.heard"
"""A monitor's cycles do not end any more, and end again; no round belongs to it."""

TOLD_AFTER = 4
"""Attempts in vain after which people are told: within two minutes, unless the target asked for longer waits."""

AHEAD = timedelta(minutes=1)
"""An event that is so much younger than now was written by a clock that was ahead: its moments are not waited for."""
LONGEST_WAIT = timedelta(days=1)
"""How long a target may ask to be left alone: the next attempt is never put off by more."""

_INSTANT = timedelta(microseconds=1)
"""The least by which two moments differ."""

_FAILING = sa.and_(deliveries.c.state == "pending", deliveries.c.attempts >= TOLD_AFTER)
_NAMESPACE = uuid.UUID("6f1d5b0e-58c3-4b7e-9a35-0d2f0f4f6a11")


def event_id(monitor: str, rule: str, version: str, kind: str, round_key: str | int) -> str:
    """The same verdict gives the same id, so an event that is made again after a kill is the same event."""
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join((monitor, rule, version, kind, str(round_key)))))


def add(
    connection: Connection,
    round_id: int | None,
    body: Document,
    actions: Sequence[str] | Mapping[str, datetime],
    at: datetime,
) -> bool:
    """Write an event and its deliveries; false where this very event is already there.

    ``actions`` may say for each action when it is to be tried first: after a cooldown, or a silence window.
    """
    if connection.scalar(sa.select(events.c.id).where(events.c.id == body["id"])) is not None:
        return False
    connection.execute(
        events.insert().values(
            id=body["id"],
            monitor=body["monitor"],
            round_id=round_id,
            rule=body["rule"],
            type=body["type"],
            body=dict(body),
            created_at=at,
        )
    )
    first = dict(actions) if isinstance(actions, Mapping) else dict.fromkeys(actions, at)
    for action, next_at in first.items():
        connection.execute(
            deliveries.insert().values(event_id=body["id"], action=action, state="pending", attempts=0, next_at=next_at)
        )
    return True


def is_due(at: datetime) -> sa.ColumnElement[bool]:
    """Whether a delivery is to be tried by now: also one that was put off by a clock that was ahead."""
    tried = deliveries.c.attempts > 0
    return sa.or_(
        deliveries.c.next_at <= at,
        sa.and_(~tried, events.c.created_at > at + AHEAD),
        sa.and_(tried, deliveries.c.next_at > at + LONGEST_WAIT + AHEAD),
    )


def last_alarm(connection: Connection, monitor: str, rule: str, at: datetime) -> datetime | None:
    """When the rule last raised an alarm that was not withdrawn from every action; one that is yet to come is none."""
    told = sa.select(deliveries.c.id).where(deliveries.c.event_id == events.c.id, deliveries.c.state != "withdrawn")
    query = (
        sa.select(events.c.created_at)
        .where(events.c.monitor == monitor, events.c.rule == rule, events.c.type == ALARM, told.exists())
        .where(events.c.created_at <= at + AHEAD)
        .order_by(events.c.created_at.desc())
        .limit(1)
    )
    found: datetime | None = connection.execute(query).scalar()
    return found


def withdraw(
    connection: Connection, monitor: str, rule: str, model_uri: str, at: datetime, why: str = "it recovered"
) -> set[str]:
    """Take back the deliveries of the rule's alarms that wait for a cooldown or a silence to end: the alarm is over.

    Gives the actions that were not told of the alarm and so need not hear of its end.
    """
    query = (
        sa.select(deliveries.c.id, deliveries.c.action, events.c.body)
        .join(events, events.c.id == deliveries.c.event_id)
        .where(events.c.monitor == monitor, events.c.rule == rule, events.c.type == ALARM)
        .where(deliveries.c.state == "pending", deliveries.c.attempts == 0, ~is_due(at))
    )
    waiting = [row for row in connection.execute(query) if (row.body.get("model") or {}).get("uri") == model_uri]
    for row in waiting:
        connection.execute(
            deliveries.update()
            .where(deliveries.c.id == row.id)
            .values(state="withdrawn", problem=f"{why} before this was due")
        )
    return {row.action for row in waiting}


def acknowledge(connection: Connection, event: str, by: str, note: str | None, at: datetime) -> bool:
    """Note that somebody has taken an event on; false where somebody had before, which stays."""
    row = connection.execute(sa.select(events.c.acknowledged_at).where(events.c.id == event)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no event {event!r}; 'opmon events list' shows those there are")
    if row.acknowledged_at is not None:
        return False
    values = {"acknowledged_at": at, "acknowledged_by": by, "note": note}
    own = events.update().where(events.c.id == event, events.c.acknowledged_at.is_(None)).values(**values)
    return connection.execute(own).rowcount == 1


def replay(connection: Connection, event: str, at: datetime) -> int:
    """Send an event again to every action that has not taken it; gives how many that are."""
    if connection.scalar(sa.select(events.c.id).where(events.c.id == event)) is None:
        raise NotFoundError(f"there is no event {event!r}; 'opmon events list' shows those there are")
    return connection.execute(
        deliveries.update()
        .where(deliveries.c.event_id == event, deliveries.c.state.in_(("pending", "dead", "withdrawn")))
        .values(state="pending", attempts=0, next_at=at, problem=None)
    ).rowcount


@dataclass(frozen=True)
class Undelivered:
    """A delivery that was tried in vain, several times or for the last time."""

    event_id: str
    action: str
    problem: str | None
    attempts: int
    next_at: datetime | None
    """When it is tried again; None: not by itself."""


def undelivered(connection: Connection, monitors: Collection[str]) -> dict[str, list[Undelivered]]:
    """By monitor, the deliveries that need somebody; newest first."""
    query = (
        sa.select(events.c.monitor, deliveries)
        .join(events, events.c.id == deliveries.c.event_id)
        .where(sa.or_(deliveries.c.state == "dead", _FAILING))
        .where(events.c.monitor.in_(monitors), events.c.acknowledged_at.is_(None))
        .order_by(deliveries.c.id.desc())
    )
    found: dict[str, list[Undelivered]] = defaultdict(list)
    for row in connection.execute(query):
        next_at = None if row.state == "dead" else row.next_at
        found[row.monitor].append(Undelivered(row.event_id, row.action, row.problem, row.attempts, next_at))
    return found


def states(connection: Connection, monitors: Collection[str]) -> dict[str, dict[str, int]]:
    """By monitor how many deliveries there are in each state that is not the end of them, ``failing`` those that were
    tried in vain several times; dead ones that somebody has acknowledged are left out."""
    state = sa.case((_FAILING, "failing"), else_=deliveries.c.state).label("state")
    query = (
        sa.select(events.c.monitor, state, sa.func.count())
        .join(events, events.c.id == deliveries.c.event_id)
        .where(events.c.monitor.in_(monitors), deliveries.c.state.in_(("pending", "dead")))
        .where(sa.or_(deliveries.c.state == "pending", events.c.acknowledged_at.is_(None)))
        .group_by(events.c.monitor, state)
    )
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for monitor, state, count in connection.execute(query):
        found[monitor][state] = count
    return found


def newest_types(connection: Connection, rule: str) -> dict[str, str]:
    """By monitor the type of the newest event of a rule."""
    query = sa.select(events.c.monitor, events.c.type).where(events.c.rule == rule).order_by(events.c.created_at)
    return {row.monitor: row.type for row in connection.execute(query)}


def next_moment(connection: Connection, monitor: str, rule: str, at: datetime) -> datetime:
    """When the next event of a rule is written: now, but behind its newest, which a clock that was ahead may have
    written."""
    own = events.c.monitor == monitor, events.c.rule == rule
    newest: datetime | None = connection.scalar(sa.select(sa.func.max(events.c.created_at)).where(*own))
    return at if newest is None else max(at, newest + _INSTANT)


def waiting_of(connection: Connection, rule: str, at: datetime) -> set[str]:
    """The monitors of which a delivery of a rule's events is due."""
    query = (
        sa.select(events.c.monitor)
        .join(deliveries, deliveries.c.event_id == events.c.id)
        .where(events.c.rule == rule, deliveries.c.state == "pending", is_due(at))
    )
    return set(connection.scalars(query))


def newest_alarms(connection: Connection, pairs: Collection[tuple[str, str]]) -> dict[tuple[str, str], Document]:
    """The events of the newest alarms, by monitor and rule: a query for each name of a rule, however many monitors have
    one of that name, in which an index gives each event at once."""
    found: dict[tuple[str, str], Document] = {}
    for rule in {rule for _, rule in pairs}:
        names = listed(connection, [monitor for monitor, own in pairs if own == rule])
        newest = (
            sa.select(events.c.id)
            .where(events.c.monitor == names.c.value, events.c.rule == rule, events.c.type == ALARM)
            .order_by(events.c.created_at.desc())
            .limit(1)
            .scalar_subquery()
        )
        last = sa.select(newest.label("id")).select_from(names).subquery()
        for row in connection.execute(sa.select(events).join(last, last.c.id == events.c.id)):
            found[row.monitor, rule] = dict(row._mapping)
    return found


def get(connection: Connection, event: str) -> Document:
    """One event with its deliveries."""
    row = connection.execute(sa.select(events).where(events.c.id == event)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no event {event!r}; 'opmon events list' shows those there are")
    query = sa.select(deliveries).where(deliveries.c.event_id == event).order_by(deliveries.c.id)
    return dict(row._mapping) | {"deliveries": [dict(found._mapping) for found in connection.execute(query)]}


def listing(
    connection: Connection, monitor: str | None = None, limit: int = 100, *, only_open: bool = False
) -> list[Document]:
    """The newest events with the state of their deliveries; ``only_open``: those that nobody has acknowledged."""
    query = sa.select(events).order_by(events.c.created_at.desc(), events.c.id).limit(limit)
    if only_open:
        query = query.where(events.c.acknowledged_at.is_(None))
    if monitor is not None:
        query = query.where(events.c.monitor == monitor)
    found = {row.id: dict(row._mapping) | {"deliveries": []} for row in connection.execute(query)}
    for row in connection.execute(
        sa.select(deliveries).where(deliveries.c.event_id.in_(found)).order_by(deliveries.c.id)
    ):
        found[row.event_id]["deliveries"].append(dict(row._mapping))
    return list(found.values())
