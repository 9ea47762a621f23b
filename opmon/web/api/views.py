"""Monitors, rounds and events as the API tells them: the views of :mod:`opmon.queries`, with quantities in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from opmon.types import Estimate
from opmon.web.words import interval_of


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


Bound = Annotated[float | None, BeforeValidator(_finite)]
"""A number; null where there is no bound."""
State = Literal["ok", "alarm", "unknown"]


class View(BaseModel):
    """Read from a view's own fields."""

    model_config = ConfigDict(from_attributes=True)


class EstimateOut(View):
    """What is estimated of all inputs of a round, from its labels."""

    quantity: str = Field(description="what it is of, such as accuracy")
    unit: str = Field(description="of its numbers; empty for shares, which lie between 0 and 1")
    better: Literal["higher", "lower"]
    value: Bound
    low: Bound = Field(description="the lower end of the interval; null: there is none")
    high: Bound
    level: float = Field(description="how often such intervals hold the truth")
    text: str = Field(description="value and interval as people read them")
    n: int = Field(description="labels that were drawn")
    frame_size: int = Field(description="inputs that it speaks of")
    response: float = Field(description="the share of the draws that was answered")
    method: str
    provisional: bool = Field(description="whether labels may still come")
    notes: list[str]

    @classmethod
    def of(cls, estimate: Estimate) -> EstimateOut:
        quantity = estimate.quantity
        own = {name: getattr(estimate, name) for name in cls.model_fields if name not in _OF_QUANTITY}
        told = {"quantity": quantity.name, "unit": quantity.unit, "better": quantity.better}
        return cls.model_validate(own | told | {"text": interval_of(estimate)})


_OF_QUANTITY = ("quantity", "unit", "better", "text")


def _told(estimate: Estimate | None) -> EstimateOut | None:
    return None if estimate is None else EstimateOut.of(estimate)


Estimated = Annotated[EstimateOut, BeforeValidator(_told)]
MaybeEstimated = Annotated[EstimateOut | None, BeforeValidator(_told)]


class ReasonOut(View):
    """How one rule stands that may raise an alarm."""

    rule: str
    state: State
    round: int | None = Field(description="the round of its newest verdict")
    message: str = Field(description="the evidence")


class NeedOut(View):
    """Something that does not go on without a person."""

    kind: str
    message: str
    round: int | None
    event: str | None


class QueueOut(View):
    """The labels of a monitor: its cost so far, and what waits."""

    asked: int
    spoken: int
    open: int
    due_at: datetime | None
    further: int = Field(description="those of the open ones that wait for a further opinion")


class PastOut(View):
    """What was estimated of one of the last rounds."""

    round: int
    at: datetime
    model_version: str
    value: Bound
    low: Bound
    high: Bound
    provisional: bool


class LatestOut(View):
    """The newest final estimate."""

    round: int
    at: datetime = Field(description="when the round's last input came")
    model: str
    model_version: str
    failures: int | None
    estimate: Estimated


class LineOut(View):
    """A monitor at a glance."""

    name: str
    quantity: str
    status: Literal["healthy", "degraded", "unknown", "unwatched"]
    why: str
    reasons: list[ReasonOut]
    rounds: int
    queue: QueueOut
    latest: LatestOut | None
    past: list[PastOut]
    needs: list[NeedOut]
    last_success_at: datetime | None
    next_at: datetime | None


class LinesOut(View):
    monitors: list[LineOut]


class VerdictOut(View):
    """What a rule said of a round."""

    rule: str
    state: State
    advice: bool = Field(description="whether it stands for no alarm, whatever it says")
    message: str


class RoundOut(View):
    """A round: what it asked, what came of it."""

    number: int
    state: str
    model: str
    opened_at: datetime
    ends_at: datetime | None
    received: int
    inputs: int | None
    unscorable: int | None
    duplicates: int | None
    losses: Mapping[str, Mapping[str, int]]
    skew: float | None = Field(description="the share that production answered otherwise than the registered model")
    drift_share: float | None
    asked: int
    spoken: int
    due_at: datetime | None
    estimate: MaybeEstimated
    failures: int | None
    verdicts: list[VerdictOut]
    run_id: str | None = Field(description="its run in MLflow")
    problem: str | None
    waits_for: str | None


class RoundsOut(View):
    rounds: list[RoundOut] = Field(description="newest first")


class PointOut(View):
    """A round on the timeline."""

    round: int
    at: datetime
    model_version: str
    alarm: bool
    rolling: Bound = Field(description="the estimate over the last rounds, as of this one")
    estimate: Estimated


class TimelineOut(View):
    threshold: float | None
    points: list[PointOut] = Field(description="oldest first")


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
    round: int
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


class ConfigurationOut(View):
    monitor: str
    configuration: JsonValue = Field(description="with all defaults; secrets and passwords are hidden")
