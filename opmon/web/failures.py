"""What a model got wrong in a round: the labelled inputs themselves, those that stand for most first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from opmon.adjudication import Asked
from opmon.answers import readable
from opmon.config import MonitorSettings
from opmon.failure_words import FAILURE_WORDS, FailureWords
from opmon.problems import traits
from opmon.stages.estimate import Answers, read_answers
from opmon.stages.round_files import kind_of
from opmon.stages.weights import weight_of
from opmon.store.engine import Connection
from opmon.store.rounds import Round
from opmon.store.task_keys import key_of
from opmon.web.api.models import FieldOut
from opmon.web.fields import fields_of

SHOWN = 60
"""The most that a page shows: the dataset in MLflow holds all."""


@dataclass(frozen=True)
class FailureView:
    """One labelled input on which the model is wrong."""

    key: str
    """Names its task, and so its pictures."""
    input_id: str
    truth: str
    prediction: str
    confidence: float | None
    weight: float | None
    """How many inputs of the round it stands for; None where the design does not tell."""
    error: float | None
    """How far off a number is."""
    said: str
    true: str
    """Prediction and truth as people read them."""
    annotators: tuple[str, ...]
    fields: Sequence[FieldOut]


@dataclass(frozen=True)
class FailuresView:
    """Those of one round."""

    round: int
    total: int
    answered: int
    """So many of its inputs have a truth."""
    failures: Sequence[FailureView]
    compares: bool = True
    """Whether people said what is true, and not how good an output is."""
    words: FailureWords = FAILURE_WORDS["wrong"]
    """How pages speak of them."""
    labels_pruned_at: datetime | None = None
    """When its labels were pruned: nothing tells any more what it got wrong."""


def failures_of(connection: Connection, settings: MonitorSettings, round_: Round, limit: int = SHOWN) -> FailuresView:
    """The failures of a round, those that stand for most first; of numbers and outputs the worst ones."""
    if round_.draw is None:
        return FailuresView(round_.number, 0, 0, (), labels_pruned_at=round_.labels_pruned_at)
    answers = read_answers(connection, round_)
    weights, found = _weights(answers), answers.failures(round_.plan)
    of = traits(round_.plan.problem)
    if weights and of.right_or_wrong:
        found = sorted(found, key=lambda task: -weights.get(task.position, 0.0))
    shown = [_failure(settings, round_, task, weights.get(task.position)) for task in found[:limit]]
    spoken = FAILURE_WORDS[kind_of(round_.plan)]
    return FailuresView(round_.number, len(found), answers.returned, shown, of.compares, spoken)


def _weights(answers: Answers) -> dict[int, float]:
    if not answers.sample.answered.any():
        return {}
    weights = weight_of(answers.sample) or {}
    return {position: weight for position, weight in weights.items() if weight > 0 and math.isfinite(weight)}


def _failure(settings: MonitorSettings, round_: Round, task: Asked, weight: float | None) -> FailureView:
    key = key_of(task.task_id or 0, round_.monitor, round_.number, task.input_id, round_.plan.since)
    numbers = traits(round_.plan.problem).of_numbers
    doubt = task.variables.get("confidence")
    return FailureView(
        key=key,
        input_id=task.input_id,
        truth=task.truth or "",
        prediction=task.prediction,
        confidence=None if doubt is None else 1 - doubt,
        weight=weight,
        error=abs(float(task.truth) - float(task.prediction)) if numbers and task.truth else None,
        said=readable(task.prediction, round_.plan.problem, round_.plan.unit),
        true=readable(task.truth or "", round_.plan.problem, round_.plan.unit),
        annotators=task.annotators,
        fields=fields_of(settings, key, task.payload),
    )
