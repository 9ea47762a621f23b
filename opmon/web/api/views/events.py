"""Events and their deliveries as the API tells them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from opmon.web.api.views.estimates import View


class DeliveryOut(View):
    """An event on its way to one action."""

    action: str
    state: Literal["pending", "delivered", "dead", "withdrawn"]
    attempts: int
    next_at: datetime
    delivered_at: datetime | None
    problem: str | None


class EventOut(View):
    """What a rule raised, and what became of it."""

    id: str
    monitor: str
    round: int | None
    rule: str
    type: str
    message: str
    created_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None
    deliveries: list[DeliveryOut]


class EventsOut(View):
    events: list[EventOut] = Field(description="newest first")


class ReplayedOut(View):
    deliveries: int = Field(description="those that the next run tries again; 0: every action has taken it already")


class AcknowledgedOut(View):
    new: bool = Field(description="false: somebody had taken it on before, and nothing was changed")
    by: str = Field(description="who deals with it")
