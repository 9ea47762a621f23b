"""What a round tells its model version's timeline, and its own run: every final number once.

All of it follows from the database and has a fixed step and moment, so that telling twice is telling once, whatever
was told before a kill.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from opmon.abc import Point
from opmon.adjudication import Asked
from opmon.errors import ModelError, NotFoundError
from opmon.reports.slices import slice_metrics
from opmon.reports.timeline import (
    RoundFacts,
    asked_metrics,
    corrected_metrics,
    final_metrics,
    input_metrics,
    measure_metrics,
    provisional_metrics,
    revised_metrics,
)
from opmon.retraining import ENDED_TAG
from opmon.stages.correction import ruled
from opmon.stages.lags import lags_of
from opmon.stages.toolbox import Toolbox
from opmon.store import queue, revisions, sliced
from opmon.store.measured import Measured
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.store.truths import Lags
from opmon.types import ModelVersion
from opmon.types.slicing import Sliced

if TYPE_CHECKING:
    from opmon.stages.estimate import Answers

log = logging.getLogger(__name__)

NOTE_TAG = "mlflow.note.content"
"""What MLflow shows as the description of a run."""
LONGEST_NOTE = 7_500
"""A tag holds no more than 8,000 characters."""
MOST_POINTS = 900
"""So many numbers of a round go to MLflow, in one call; the files of the round hold them all."""


def facts_of(round_: Round, *, asked: int = 0, returned: int = 0, failures: int | None = None) -> RoundFacts:
    """What happened in a round."""
    return RoundFacts(
        received=round_.received,
        unscorable=round_.unscorable or 0,
        duplicates=round_.duplicates or 0,
        losses=round_.losses or {},
        asked=asked,
        returned=returned,
        failures=None if failures is None else min(failures, returned),
        skew=round_.skew,
        drift=(round_.drift or {}).get("share"),
        answers_drift=(round_.drift or {}).get("answers"),
    )


def facts_as_of(round_: Round, revision: Revision, tasks: Sequence[Asked]) -> RoundFacts:
    """What had happened when the revision was made, with these tasks; a regression fails only beyond a tolerance."""
    counts = round_.plan.usual_quantity.share or round_.plan.tolerance is not None
    failures = revision.failures if counts else None
    returned = sum(task.truth is not None for task in tasks)
    facts = facts_of(round_, asked=len(tasks), returned=returned, failures=failures)
    if not any(task.arrived for task in tasks):
        return facts
    lags = Lags.of(lags_of(round_, tasks))
    return replace(facts, arrived=lags.arrived, lag_median=lags.median_hours, lag_ninety=lags.ninety_hours)


@dataclass(frozen=True)
class Told:
    """What a round has to tell beside its numbers."""

    rolling: Sequence[Point] = ()
    """Points of the timeline alone."""
    params: Mapping[str, object] = field(default_factory=dict)
    """How the round was made."""
    note: str | None = None
    """The description of the round's run."""
    timeline_note: str | None = None
    """That of the timeline, where the round is the last one."""


def tell_estimate(work: Toolbox, round_: Round, revision: Revision, answers: Answers, told: Told) -> None:
    """Log the newest revision of a round: a provisional estimate, the first final one, or that and what it became.

    It is one call for the round's run and one for the timeline, however many numbers there are.
    """
    facts = facts_as_of(round_, revision, answers.tasks)
    if revision.estimate.provisional:
        so_far = provisional_metrics(revision.estimate, facts) | measure_metrics(revision.further, "_provisional")
        points = _points(round_, input_metrics(facts))
        _tell(work, round_, points, told, [*points, *_points(round_, so_far, revision.revision)])
        return
    first, then = revision, answers.tasks
    if revision.revision or answers.labels_seen != revision.labels_seen:
        with work.store.read() as connection:
            first = revisions.first_final(connection, round_.id) or revision
            then = queue.answers(connection, round_.id, first=first.labels_seen)
        then = then if round_.plan.adjudication is None else ruled(round_, then)
    points = _points(round_, input_metrics(facts) | asked_metrics(facts))
    final = final_metrics(first.estimate, facts_as_of(round_, first, then))
    quantity = revision.estimate.quantity
    parts = _slices(work, round_, {first.key, revision.key})
    final |= corrected_metrics(first.corrected, quantity, revised=False) | measure_metrics(first.further)
    final |= slice_metrics(parts.get(first.key, ()), quantity, revised=False)
    points += _points(round_, final, first.revision)
    if revision.revision != first.revision:
        revised = revised_metrics(revision.estimate, facts)
        revised |= corrected_metrics(revision.corrected, quantity, revised=True)
        revised |= measure_metrics(revision.further, "_revised")
        revised |= slice_metrics(parts.get(revision.key, ()), quantity, revised=True)
        points += _points(round_, revised, revision.revision)
    points = points[:MOST_POINTS]
    _tell(work, round_, points, told, [*points, *told.rolling])


def _slices(work: Toolbox, round_: Round, estimates: set[int]) -> dict[int, tuple[Sliced, ...]]:
    """What is known of the round's slices, by the number of the estimate."""
    if round_.sliced is None:
        return {}
    with work.store.read() as connection:
        return sliced.of(connection, estimates)


def tell_without_estimate(
    work: Toolbox, round_: Round, asked: int, returned: int = 0, further: Sequence[Measured] = ()
) -> None:
    """Log what is known of a round that ends without an estimate; one from late labels adds to it.

    The measures ``further`` are not final: where a late label brings an estimate, that tells the final ones.
    """
    facts = facts_of(round_, asked=asked, returned=returned)
    so_far = measure_metrics(further, "_provisional")
    points = _points(round_, input_metrics(facts) | asked_metrics(facts) | so_far)
    _tell(work, round_, points, Told(), points)


def model_of(work: Toolbox, round_: Round) -> ModelVersion | None:
    """The model version, unless it was deleted while the labels came in."""
    try:
        return work.model(round_)
    except (NotFoundError, ModelError) as exc:
        log.warning("round %d of %s is told without its model version: %s", round_.number, work.name, exc)
        return None


def _points(round_: Round, metrics: Mapping[str, float], revision: int = 0) -> list[Point]:
    """At the round's end, later revisions a moment after it."""
    at = (round_.ends_at or round_.opened_at) + timedelta(milliseconds=revision)
    return [Point(key, value, round_.number, at) for key, value in metrics.items()]


def _tell(work: Toolbox, round_: Round, own: Sequence[Point], told: Told, timeline: Sequence[Point]) -> None:
    notes = [{} if note is None else {NOTE_TAG: note[:LONGEST_NOTE]} for note in (told.note, told.timeline_note)]
    ended_at = {ENDED_TAG: (round_.ends_at or round_.opened_at).astimezone(UTC).isoformat()}
    work.registry.record(round_.run_id or "", own, told.params, notes[0] | ended_at)
    work.registry.record(round_.timeline_run_id or "", timeline, None, notes[1], model_of(work, round_))
