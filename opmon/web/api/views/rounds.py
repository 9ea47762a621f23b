"""Rounds, model versions and the timeline as the API tells them, with quantities in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field

from opmon.web.api.models import FieldOut
from opmon.web.api.views.estimates import Bound, Estimated, MaybeEstimated, State, View, title_of


class VerdictOut(View):
    """What a rule said of a round."""

    rule: str
    state: State
    advice: bool = Field(description="whether it stands for no alarm, whatever it says")
    message: str


class MeasureOut(View):
    """A further measure from the same labels."""

    measure: str = Field(description="the measure of the configuration that it belongs to")
    quantity: Annotated[str, BeforeValidator(title_of)]
    estimate: MaybeEstimated
    why: str = Field(description="why it is not known; empty where it is")


class SliceOut(View):
    """What is known of one slice of a round, or of several, such as one country."""

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


class DifferingOut(View):
    """What inputs since a moment differ in most from those before."""

    words: str = Field(description="what holds for more of them; empty: nothing that is known of them tells them apart")
    since: Bound = Field(description="the share of the inputs since then that it holds for")
    before: Bound


class FailureGroupOut(View):
    """What some failures of a round have in common."""

    kind: str = Field(description="condition, confusion (of two classes), or rest: nothing found in common")
    name: str = Field(description="what they have in common, in words")
    words: list[str]
    failures: int = Field(description="so many labelled failures are in it; each is in one group")
    share: Bound = Field(description="its share of all failures of the round, by the design of the draws")
    low: Bound
    high: Bound
    rate: Bound = Field(description="how often the model fails on inputs that have this in common")
    lift: Bound = Field(description="how many times as often as on inputs that no cause holds for")
    lift_at_least: Bound
    anyway: Bound = Field(description="the share of it that would fail as well at the rate of inputs without any cause")
    p: Bound = Field(description="how probable so strong a contrast is by chance, corrected for all that was looked at")
    examples: list[str] = Field(description="some of its inputs")
    pairs: Mapping[str, int] = Field(description="what was said and what is true, the most frequent ones")
    rounds: tuple[int, int] | None = Field(
        description="the first and last of the rounds that lift and p are told of; null: this one alone, as all else"
    )
    since: datetime | None = Field(description="since when there are more of them; null: there were as many before")
    since_round: int | None = Field(description="the round in which that moment lies")
    differing: DifferingOut | None = Field(description="what the inputs since then differ in; null: not asked")


class ExpectedOut(View):
    """What was told of a round when it was scored: a prediction, and no estimate."""

    quantity: Annotated[str, BeforeValidator(title_of)]
    value: Bound
    low: Bound
    high: Bound
    level: float
    text: str = Field(description="value and interval as people read them")
    rounds: list[int] = Field(description="the rounds before whose labels it stands on; none: the scores alone")
    labels: int
    notes: list[str]


class DriftedPartOut(View):
    """What drifted of the inputs, the predictions or the model's scores."""

    part: str
    compared: int = Field(description="so many columns were compared")
    drifted: list[str] = Field(description="those that drifted, corrected for how many were looked at")


class SliceDriftOut(View):
    """A slice, or the inputs of one predicted class, that is surely worse than before or in which inputs drifted."""

    name: str
    share: Bound = Field(description="its share of the round's inputs")
    share_before: Bound
    compared: int = Field(description="so many columns were compared inside of it")
    drifted: list[str] = Field(description="those that drifted inside of it, corrected for all that were looked at")
    worse_by: Bound = Field(description="by how much the main measure is worse there than before")
    worse_at_least: Bound = Field(description="by how much at least, corrected for all slices that were looked at")


class RoundDriftOut(View):
    """What drifted in a round, and whether the model became worse with it."""

    parts: list[DriftedPartOut]
    loss: str = Field(description="loss, none seen, or not known")
    worse_by: Bound = Field(
        description="by how much the main measure is worse than in the rounds before; below 0: better"
    )
    low: Bound
    high: Bound
    against: list[int] = Field(description="the rounds before that it is compared with")
    slices: list[SliceDriftOut]
    words: list[str] = Field(description="all of it in sentences")


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
    failure_groups: list[FailureGroupOut]
    drift: RoundDriftOut | None = Field(description="told of a round by itself and of a monitor's latest; else null")
    run_id: str | None = Field(description="its run in MLflow")
    problem: str | None
    waits_for: str | None
    expected: ExpectedOut | None = Field(description="what was told before its labels; it is kept as it was told")
    not_expected: str = Field(description="why nothing was told; empty where something was, or nobody wants to know")
    labels_pruned_at: datetime | None = Field(description="when its labels were pruned; what came of them stays")


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
    labels_pruned_at: datetime | None = Field(description="when its labels were pruned, and its failures with them")


class RoundsOut(View):
    rounds: list[RoundOut] = Field(description="newest first")


class RollingOut(View):
    """The last rounds of one model version together."""

    round_number: int
    rounds: list[int]
    estimate: Estimated
    measures: list[MeasureOut] = Field(description="the further measures of these rounds")
    slices: list[SliceOut] = Field(description="the slices of these rounds, those that are worse first")


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
    comparison: str | None = Field(description="in a sentence, which of two is better; null where there are no two")


class PointOut(View):
    """A round on the timeline."""

    round: int
    at: datetime
    model_version: str
    alarm: bool
    rolling: Bound = Field(description="the estimate over the last rounds, as of this one")
    estimate: Estimated


class ExpectedPointOut(View):
    """A round that waits for labels."""

    round: int
    at: datetime
    model_version: str
    expected: ExpectedOut


class RecordOut(View):
    """How predictions did, in the rounds whose labels have come since."""

    rounds: int
    error: float = Field(description="how far off they were, on average")
    missed: int = Field(description="how often the interval missed, with regard to that of the estimate")
    lately: str = Field(description="what was wrong of late, in words; empty where nothing was")


class ForeseenOut(View):
    """What is expected of rounds that wait for labels."""

    record: RecordOut | None
    waiting: list[ExpectedPointOut] = Field(description="oldest first")


class TimelineOut(View):
    threshold: float | None
    points: list[PointOut] = Field(description="oldest first")
    foreseen: ForeseenOut
