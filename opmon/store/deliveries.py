"""The outbox in SQL: which events are on their way to which action, and what is to be tried now.

An action hears of the events of a rule in their order: a recovery waits until the alarm before it was taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.outbox import SILENCE, is_due
from opmon.store.schema import Query, deliveries, events
from opmon.types import Document


@dataclass(frozen=True)
class Delivery:
    """One event on its way to one action."""

    id: int
    event_id: str
    action: str
    state: str
    attempts: int
    body: Document
    problem: str | None = None
    """Why the last attempt was in vain."""


def due(connection: Connection, monitor: str, at: datetime, rule: str | None = None) -> list[Delivery]:
    """What should be tried now, oldest first: of one ``rule``, or of all but the watchdog, which delivers its own."""
    whose = events.c.rule != SILENCE if rule is None else events.c.rule == rule
    first = first_in_line(at, events.c.monitor == monitor, whose).subquery()
    query = (
        sa.select(deliveries, events.c.body)
        .join(first, first.c.id == deliveries.c.id)
        .join(events, events.c.id == deliveries.c.event_id)
        .where(first.c.place == 1, first.c.due)
        .order_by(deliveries.c.id)
    )
    return [
        Delivery(row.id, row.event_id, row.action, row.state, row.attempts, row.body, row.problem)
        for row in connection.execute(query)
    ]


def first_in_line(at: datetime, *conditions: sa.ColumnElement[bool]) -> Query:
    """What waits, with its monitor, whether it is due, and its place among what waits for the same rule and action."""
    line = sa.func.row_number().over(
        partition_by=(events.c.monitor, events.c.rule, deliveries.c.action), order_by=deliveries.c.id
    )
    return (
        sa.select(deliveries.c.id, is_due(at).label("due"), events.c.monitor, line.label("place"))
        .join(events, events.c.id == deliveries.c.event_id)
        .where(deliveries.c.state == "pending", *conditions)
    )


def settle(connection: Connection, delivery_id: int, **values: object) -> None:
    """Keep what became of an attempt."""
    connection.execute(deliveries.update().where(deliveries.c.id == delivery_id).values(**values))
