"""What the lags of truths mean for a round of which some have come and others not.

Without annotators: truths that come sooner than others stand for more of them (:mod:`opmon.estimators.lagged`). With
annotators, who were asked for what had not come by then: truths that came before stand for themselves, and the answers
of annotators for all that they were asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from opmon.adjudication import TRUTH, Asked
from opmon.durations import show_duration
from opmon.estimators.lagged import Arrived, arrived, lagged
from opmon.estimators.lags import Arrivals
from opmon.problems import traits
from opmon.stages.weights import linear
from opmon.store import truths
from opmon.store.engine import Connection
from opmon.store.rounds import Round
from opmon.types import Draw, Estimate, Floats, Sample
from opmon.wording import counted

MOST = 20_000
"""So many of the last lags are looked at."""
_HOUR = 3600.0
_FEW, _OFTEN = 10, 5
"""From so many truths on it is odd that none says what the model answers so often."""


def arrived_of(connection: Connection, round_: Round, tasks: Sequence[Asked], draw: Draw) -> Arrived | None:
    """Of each draw how likely its truth was to have come; None where nothing depends on it, or too little is known."""
    if not waits_alone(tasks) or not traits(round_.plan.problem).right_or_wrong:
        return None
    until = _known_until(connection, round_)
    learned = None if until is None else _learned(connection, round_, until)
    if until is None or learned is None:
        return None
    otherwise = round_.ends_at or round_.opened_at
    of = {task.position: task for task in tasks}
    drawn = [of[position] for position in draw.positions.tolist() if position in of]
    if len(drawn) < len(draw):
        return None
    truths_ = np.array(["" if task.arrived is None else task.truth for task in drawn], dtype=np.str_)
    elapsed = np.array([_hours(until, task.input_at or otherwise) for task in drawn])
    return arrived(learned, truths_, elapsed)


def awaits(tasks: Sequence[Asked], *, provisional: bool) -> str:
    """What of the truths is missing, in words."""
    if provisional:
        return "truths are still to come"
    missing = sum(not task.is_spoken_of for task in tasks)
    return f"{missing:,} of {counted(len(tasks), 'truth')} have not come, and the round waits no longer"


def by_lags(round_: Round, sample: Sample, told: Arrived | None, missing: str) -> Estimate | None:
    """The estimate from truths of which some kinds come sooner; None where that is not known, or nothing is awaited.

    ``missing`` says what has not come.
    """
    whole = Sample(sample.draw, np.nan_to_num(sample.outcomes), sample.problem)
    estimator = None if told is None else linear(whole)
    if told is None or estimator is None:
        return None
    estimate = lagged(sample, np.asarray(estimator.coefficients(whole)), told, round_.plan.level)
    until = show_duration(timedelta(hours=max(1, round(told.horizon))))
    note = (
        f"{missing}; those that have come are weighed by how soon such truths came in earlier rounds "
        f"({told.known:,} lags). This takes for granted that they do as before, and that those that come later than "
        f"after {until}, or never, are like the others"
    )
    return replace(estimate, notes=(*estimate.notes, note))


def lags_of(round_: Round, tasks: Sequence[Asked]) -> list[float]:
    """How many hours after each input its truth came, of those that came by themselves."""
    otherwise = round_.ends_at or round_.opened_at
    first = [(task, next(label for label in task.labels if label.annotator == TRUTH)) for task in tasks if task.arrived]
    return [_hours(label.at, task.input_at or otherwise) for task, label in first]


def waits_alone(tasks: Sequence[Asked]) -> bool:
    """Whether truths are all that has come of a round, and not all have."""
    spoken = [task for task in tasks if task.is_spoken_of]
    alone = all(task.arrived is not None for task in spoken)
    return bool(spoken) and alone and len(spoken) < len(tasks)


def one_sided(tasks: Sequence[Asked]) -> tuple[str, ...]:
    """A note where truths are missing and none that has come says a class that the model often answers."""
    told = [task.truth for task in tasks if task.arrived is not None]
    if len(told) < _FEW or not waits_alone(tasks):
        return ()
    answered = Counter(task.prediction for task in tasks)
    silent = [(name, count) for name, count in answered.most_common() if name not in told and count >= _OFTEN]
    if not silent:
        return ()
    named = ", ".join(f"{name!r} ({count} of {len(tasks)} answers)" for name, count in silent[:3])
    more = ", …" if silent[3:] else ""
    return (
        f"no truth that has come says {named}{more}, which the model does: where truth comes of some classes alone, "
        f"this is the accuracy on those",
    )


def asked_for_the_rest(round_: Round, tasks: Sequence[Asked], sample: Sample) -> Sample | None:
    """The sample with the propensity of a round whose annotators were asked for what had not come by then; None where
    nobody was, or no answer of theirs is missing."""
    asks_at = round_.asks_at
    if asks_at is None or waits_alone(tasks):
        return None
    early = {task.position for task in tasks if task.arrived is not None and task.labels[0].at <= asks_at}
    before = np.isin(sample.draw.positions, np.array(sorted(early), dtype=np.int64))
    rest = ~before
    if not before.any() or not (rest & sample.answered).any() or sample.answered.all():
        return None
    share = float(sample.answered[rest].mean())
    return replace(sample, propensity=np.where(before, 1.0, share))


def _learned(connection: Connection, round_: Round, until: datetime) -> Arrivals | None:
    before = truths.arrivals_before(connection, round_.monitor, round_.number, MOST)
    if not before:
        return None
    lags: Floats = np.array([_hours(each.at, each.input_at) for each in before])
    watched: Floats = np.array([_hours(until, each.input_at) for each in before])
    return Arrivals.learned(lags, watched, np.array([each.truth for each in before]))


def _known_until(connection: Connection, round_: Round) -> datetime | None:
    """Up to when truths are known; None where they come from no source of their own."""
    read = truths.last_read(connection, [round_.monitor]).get(round_.monitor)
    return None if read is None or read.known_until is None else min(read.known_until, read.read_at)


def _hours(end: datetime, start: datetime) -> float:
    return max((end - start).total_seconds() / _HOUR, 0.0)
