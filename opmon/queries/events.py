"""What rules raised, and what became of every delivery."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from opmon.store import outbox
from opmon.store.engine import Connection
from opmon.types import Document


@dataclass(frozen=True)
class DeliveryView:
    """An event on its way to one action."""

    id: int
    event_id: str
    action: str
    state: str
    """``pending``, ``delivered``, ``dead`` or ``withdrawn``."""
    attempts: int
    next_at: datetime
    delivered_at: datetime | None
    problem: str | None


@dataclass(frozen=True)
class EventView:
    """An event, who deals with it, and its deliveries."""

    id: str
    monitor: str
    round: int | None
    """None: it belongs to no round."""
    rule: str
    type: str
    """``opmon.alarm``, ``opmon.recovered``, ``opmon.changed``, ``opmon.advice``, ``opmon.silent``, ``opmon.heard``."""
    message: str
    body: Document
    """The whole event, as actions get it."""
    created_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None
    deliveries: tuple[DeliveryView, ...]


def newest_events(
    connection: Connection, monitor: str | None = None, limit: int = 100, *, only_open: bool = False
) -> list[EventView]:
    """The newest events, of one monitor or of all; ``only_open``: those that nobody has acknowledged."""
    return [_view(row) for row in outbox.listing(connection, monitor, limit, only_open=only_open)]


def event(connection: Connection, event_id: str) -> EventView:
    """One event by its id."""
    return _view(outbox.get(connection, event_id))


def _view(row: Document) -> EventView:
    body = row["body"]
    own = {name: value for name, value in row.items() if name not in ("round_id", "deliveries")}
    deliveries = tuple(DeliveryView(**each) for each in row["deliveries"])
    return EventView(**own, round=body["round"], message=body["message"], deliveries=deliveries)
