"""Monitors as the API tells them: the views of :mod:`opmon.queries`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from opmon.web.api.views.estimates import Bound, Estimated, State, View
from opmon.web.api.views.rounds import ForeseenOut, RollingOut, RoundOut


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
    foreseen: ForeseenOut
    needs: list[NeedOut]
    last_success_at: datetime | None
    next_at: datetime | None


class ConfigurationOut(View):
    monitor: str
    configuration: JsonValue = Field(description="with all defaults; secrets and passwords are hidden")
