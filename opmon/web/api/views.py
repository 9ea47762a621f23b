"""Monitors, rounds and events as the API tells them: the views of :mod:`opmon.queries`, with quantities in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from opmon.quantities import Quantity
from opmon.samplers.advisor import Advice
from opmon.types import Estimate
from opmon.web.api.models import FieldOut
from opmon.web.planned import Planned
from opmon.web.words import interval_of


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


Bound = Annotated[float | None, BeforeValidator(_finite)]
"""A number; null where there is no bound."""
State = Literal["ok", "alarm", "unknown"]


def _name(quantity: Quantity) -> str:
    return quantity.title


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


class MeasureOut(View):
    """A further measure from the same labels."""

    measure: str = Field(description="the measure of the configuration that it belongs to")
    quantity: Annotated[str, BeforeValidator(_name)]
    estimate: MaybeEstimated
    why: str = Field(description="why it is not known; empty where it is")


class SliceOut(View):
    """What is known of one slice of a round, such as one country."""

    name: str
    levels: Mapping[str, str] = Field(description="by what divides the inputs, its value")
    inputs: int
    share: float
    answers: int
    value: Bound
    low: Bound
    high: Bound
    note: str
    worse_by: Bound = Field(description="by how much it is worse than all other inputs; null: not known to be")


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
    measures: list[MeasureOut]
    slices: list[SliceOut]
    run_id: str | None = Field(description="its run in MLflow")
    problem: str | None
    waits_for: str | None


class FailureOut(View):
    """A labelled input on which the model is wrong."""

    key: str = Field(description="names its task")
    input_id: str
    truth: str
    prediction: str
    confidence: Bound
    weight: Bound = Field(description="how many inputs of the round it stands for")
    error: Bound = Field(description="how far off a regression is")
    annotators: list[str]
    fields: list[FieldOut]


class FailuresOut(View):
    """What the model got wrong in a round."""

    round: int
    total: int
    answered: int = Field(description="so many of its inputs have a truth")
    failures: list[FailureOut]
    compares: bool = Field(description="whether people said what is true, and not how good an output is")


class RoundsOut(View):
    rounds: list[RoundOut] = Field(description="newest first")


class RollingOut(View):
    """The last rounds of one model version together."""

    round_number: int
    rounds: list[int]
    estimate: Estimated


class OneOut(View):
    """A monitor with its newest rounds."""

    name: str
    quantity: str
    status: Literal["healthy", "degraded", "unknown", "unwatched"]
    why: str
    reasons: list[ReasonOut]
    rules: list[str]
    rounds: int
    queue: QueueOut
    latest: RoundOut | None = Field(description="the newest round that has a final estimate")
    rolling: RollingOut | None
    newest: list[RoundOut]
    needs: list[NeedOut]
    last_success_at: datetime | None
    next_at: datetime | None


class VersionOut(View):
    """A model version, over the last rounds that it answered itself."""

    model: str
    version: str
    rounds: int
    first: int
    last: int
    since: datetime
    until: datetime
    labels: int
    failures: int
    estimate: Estimated


class VersionsOut(View):
    versions: list[VersionOut] = Field(description="newest first")


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


class WidthOut(View):
    """A budget with the half-widths that it is expected to give."""

    budget: int
    half_width: float
    plain_half_width: float = Field(description="with simple random sampling")


def _sampler(advice: Advice, budget: int) -> dict[str, JsonValue]:
    """What stands in the configuration."""
    return cast(dict[str, JsonValue], {"type": advice.sampler, "budget": budget, **advice.parameters})


class PlanOut(View):
    """How many labels an interval needs."""

    quantity: str
    unit: str
    inputs: int
    expected: float | None
    aim: float
    level: float
    half_width: float = Field(description="what the budget gives")
    budget: int
    plain_budget: int = Field(description="what simple random sampling would take")
    hopeful_budget: int | None
    notes: list[str]
    sampler: dict[str, JsonValue]
    reasons: list[str]
    curve: list[WidthOut]

    @classmethod
    def of(cls, found: Planned) -> PlanOut:
        known, plan, advice = found.known, found.plan, found.advice
        return cls(
            quantity=known.quantity.name,
            unit=known.quantity.unit,
            inputs=found.inputs,
            expected=known.expected,
            aim=known.aim,
            level=known.level,
            half_width=plan.half_width,
            budget=plan.budget,
            plain_budget=plan.plain_budget,
            hopeful_budget=plan.hopeful_budget,
            notes=list(plan.notes),
            sampler=_sampler(advice, plan.budget),
            reasons=list(advice.reasons),
            curve=[WidthOut(budget=n, half_width=own, plain_half_width=plain) for n, own, plain in found.curve],
        )


class ConfigurationOut(View):
    monitor: str
    configuration: JsonValue = Field(description="with all defaults; secrets and passwords are hidden")
