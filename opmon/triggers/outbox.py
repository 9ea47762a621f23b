"""Events wait here from the transaction of their verdict until every action has taken them.

An event and one delivery per configured action are written together with the verdict, so neither exists without the
other. Deliveries are tried until the action says yes: at least once, always with the same event id, so that a receiver
that remembers ids sees each event once. After ``ATTEMPTS`` refusals, or one that no retry can help, a delivery is dead:
it is kept, shown by ``opmon events`` and can be replayed.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import DeliveryError, NotFoundError, OpmonError
from opmon.store.leases import Lease
from opmon.store.schema import deliveries, events

log = logging.getLogger(__name__)

ALARM, RECOVERED, ADVICE = "opmon.alarm", "opmon.recovered", "opmon.advice"
"""The types of events. Advice is kept and shown; no action hears of it."""

ATTEMPTS = 12
PATIENCE = 3
"""Failures running after which an action is left alone for this time."""
FIRST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(hours=6)

_NAMESPACE = uuid.UUID("6f1d5b0e-58c3-4b7e-9a35-0d2f0f4f6a11")


class Acting(Protocol):
    def act(self, event: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Delivery:
    """One event on its way to one action."""

    id: int
    event_id: str
    action: str
    state: str
    attempts: int
    body: Mapping[str, Any]


def event_id(monitor: str, rule: str, version: str, kind: str, round_key: str | int) -> str:
    """The same verdict gives the same id, so an event that is made again after a kill is the same event."""
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join((monitor, rule, version, kind, str(round_key)))))


def add(
    connection: Connection,
    round_id: int,
    body: Mapping[str, Any],
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


def last_alarm(connection: Connection, monitor: str, rule: str) -> datetime | None:
    """When the rule last raised an alarm that was not withdrawn from every action."""
    told = sa.select(deliveries.c.id).where(deliveries.c.event_id == events.c.id, deliveries.c.state != "withdrawn")
    query = (
        sa.select(events.c.created_at)
        .where(events.c.monitor == monitor, events.c.rule == rule, events.c.type == ALARM, told.exists())
        .order_by(events.c.created_at.desc())
        .limit(1)
    )
    found: datetime | None = connection.execute(query).scalar()
    return found


def withdraw(connection: Connection, monitor: str, rule: str, model_uri: str, at: datetime) -> set[str]:
    """Take back the deliveries of the rule's alarms that wait for a cooldown or a silence to end, because it recovered.

    Gives the actions that were not told of the alarm and so need not hear of the recovery.
    """
    query = (
        sa.select(deliveries.c.id, deliveries.c.action, events.c.body)
        .join(events, events.c.id == deliveries.c.event_id)
        .where(events.c.monitor == monitor, events.c.rule == rule, events.c.type == ALARM)
        .where(deliveries.c.state == "pending", deliveries.c.attempts == 0, deliveries.c.next_at > at)
    )
    waiting = [row for row in connection.execute(query) if (row.body.get("model") or {}).get("uri") == model_uri]
    for row in waiting:
        connection.execute(
            deliveries.update()
            .where(deliveries.c.id == row.id)
            .values(state="withdrawn", problem="it recovered before this was due")
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
    connection.execute(events.update().where(events.c.id == event).values(**values))
    return True


def due(connection: Connection, monitor: str, at: datetime) -> list[Delivery]:
    """What should be tried now, oldest first. An action hears of the events of a rule in their order: a recovery waits
    until the alarm before it was taken."""
    older, its_event = deliveries.alias(), events.alias()
    before = (
        sa.select(older.c.id)
        .join(its_event, its_event.c.id == older.c.event_id)
        .where(older.c.state == "pending", older.c.action == deliveries.c.action, older.c.id < deliveries.c.id)
        .where(its_event.c.monitor == events.c.monitor, its_event.c.rule == events.c.rule)
    )
    query = (
        sa.select(deliveries, events.c.body)
        .join(events, events.c.id == deliveries.c.event_id)
        .where(events.c.monitor == monitor, deliveries.c.state == "pending", deliveries.c.next_at <= at)
        .where(~before.exists())
        .order_by(deliveries.c.id)
    )
    return [
        Delivery(row.id, row.event_id, row.action, row.state, row.attempts, row.body)
        for row in connection.execute(query)
    ]


def deliver(
    lease: Lease,
    monitor: str,
    actions: Mapping[str, Acting],
    clock: Callable[[], datetime],
    stopping: Callable[[], bool] = lambda: False,
) -> tuple[int, int]:
    """Try every delivery that is due once, until told to stop; gives how many were taken and how many were not.

    An action that fails ``PATIENCE`` times running is left alone until the next time, so that a target that hangs does
    not hold up the others.
    """
    tried: set[int] = set()
    failed: Counter[str] = Counter()
    taken = 0
    while True:
        with lease.store.read() as connection:
            waiting = [delivery for delivery in due(connection, monitor, clock()) if delivery.id not in tried]
        now = next((delivery for delivery in waiting if failed[delivery.action] < PATIENCE), None)
        if now is None or stopping():
            return taken, len(tried) - taken + len(waiting)
        tried.add(now.id)
        values = _attempt(now, actions.get(now.action), clock)
        delivered = values["state"] == "delivered"
        taken += delivered
        failed[now.action] = failed[now.action] + 1 if values["state"] == "pending" else 0
        with lease.write() as connection:
            connection.execute(deliveries.update().where(deliveries.c.id == now.id).values(**values))


def replay(connection: Connection, event: str, at: datetime) -> int:
    """Send an event again to every action that has not taken it; gives how many that are."""
    if connection.scalar(sa.select(events.c.id).where(events.c.id == event)) is None:
        raise NotFoundError(f"there is no event {event!r}; 'opmon events list' shows those there are")
    return connection.execute(
        deliveries.update()
        .where(deliveries.c.event_id == event, deliveries.c.state.in_(("pending", "dead", "withdrawn")))
        .values(state="pending", attempts=0, next_at=at, problem=None)
    ).rowcount


def get(connection: Connection, event: str) -> dict[str, Any]:
    """One event with its deliveries."""
    row = connection.execute(sa.select(events).where(events.c.id == event)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no event {event!r}; 'opmon events list' shows those there are")
    query = sa.select(deliveries).where(deliveries.c.event_id == event).order_by(deliveries.c.id)
    return dict(row._mapping) | {"deliveries": [dict(found._mapping) for found in connection.execute(query)]}


def listing(
    connection: Connection, monitor: str | None = None, limit: int = 100, *, only_open: bool = False
) -> list[dict[str, Any]]:
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


def wait_after(attempts: int, retry_after: float | None = None) -> timedelta:
    """Exponential backoff with full jitter above a half; never sooner than the target asked for."""
    longest = min(FIRST_WAIT * 3.0 ** min(attempts - 1, 20), LONGEST_WAIT)
    wait = longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
    return max(wait, min(timedelta(seconds=retry_after or 0), timedelta(days=1)))


def _attempt(delivery: Delivery, action: Acting | None, clock: Callable[[], datetime]) -> dict[str, Any]:
    attempts = delivery.attempts + 1
    if action is None:
        return {
            "state": "dead",
            "problem": f"no action {delivery.action!r} is configured any more; put it back and replay the event",
        }
    try:
        action.act(delivery.body)
    except DeliveryError as exc:
        final, problem, retry_after = exc.final, str(exc), exc.retry_after
    except OpmonError as exc:
        final, problem, retry_after = False, str(exc), None
    except Exception as exc:
        log.exception("action %s failed on event %s", delivery.action, delivery.event_id)
        final, problem, retry_after = False, f"{type(exc).__name__}: {exc}", None
    else:
        return {"state": "delivered", "attempts": attempts, "delivered_at": clock(), "problem": None}
    log.warning("action %s did not take event %s: %s", delivery.action, delivery.event_id, problem)
    dead = final or attempts >= ATTEMPTS
    return {
        "state": "dead" if dead else "pending",
        "attempts": attempts,
        "next_at": clock() + wait_after(attempts, retry_after),
        "problem": problem,
    }
