"""What the failures of a round have in common: a few causes instead of many cases.

What annotators saw of the labelled inputs, right and wrong ones, of the round and of those before it, is described
(columns, words of texts, statistics of pictures), and :mod:`opmon.causes` finds what sets the failures apart, and since
when they are more frequent. Sizes are those of the round itself, by the design of its draws.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opmon.answers import readable
from opmon.causes import Found, Grouping, failure_groups, features_of, picture_features
from opmon.causes.features import Feature
from opmon.errors import DatabaseUnavailable, InputError, StateUnavailable
from opmon.estimators.ratios import ratio
from opmon.problems import Problem, traits
from opmon.quantities import ACCURACY
from opmon.reports.pixels import UnshowableError, arranged, decoded
from opmon.stages.estimate import Answers
from opmon.stages.failing import failing
from opmon.stages.failure_pictures import picture_column, picture_of
from opmon.stages.looked_at import LookedAt, looked_at
from opmon.stages.toolbox import Toolbox
from opmon.stages.weights import linear, weight_of
from opmon.store import queue
from opmon.store.rounds import Round
from opmon.types import Array, Estimate
from opmon.types.grouped import Differing, FailureGroup

log = logging.getLogger(__name__)

EXAMPLES = 5
SIDE = 64
"""Pictures are looked at with about so many pixels a side."""


def group_failures(work: Toolbox, round_: Round, answers: Answers) -> tuple[FailureGroup, ...]:
    """The groups of a round's failures, the largest first; empty where there is none, or no telling them apart."""
    try:
        return _grouped(work, round_, answers)
    except (DatabaseUnavailable, StateUnavailable):  # the round is tried again
        raise
    except Exception:  # anybody's data: a group is a hint, and no reason to lose a round
        log.warning("the failures of round %d of %s are not grouped", round_.number, work.name, exc_info=True)
        return ()


def _grouped(work: Toolbox, round_: Round, answers: Answers) -> tuple[FailureGroup, ...]:
    looked = looked_at(work, round_, answers)
    if looked is None:
        return ()
    tasks = looked.tasks
    classes = traits(round_.plan.problem).compares and not traits(round_.plan.problem).of_numbers
    said = [readable(task.prediction, round_.plan.problem) for task in tasks]
    true = [readable(task.truth or "", round_.plan.problem) for task in tasks]
    grouping = failure_groups(
        _features(work, looked, true if classes else None),
        looked.failed,
        looked.weights,
        predicted=said if classes else None,
        truth=true if classes else None,
        moments=looked.moments,
        seed=round_.plan.seed,
    )
    wrong = failing(answers.sample, round_.plan)
    found = [_told(group, grouping, looked, answers, wrong, round_.plan.problem) for group in grouping.groups]
    told = [each for each in found if each.failures]
    told.sort(key=lambda each: (each.kind == "rest", -(each.share or 0.0), -each.failures))
    first = next((at for at, each in enumerate(told) if each.differing is not None), None)
    return tuple(each if at == first else replace(each, differing=None) for at, each in enumerate(told))


def _features(work: Toolbox, looked: LookedAt, classes: Sequence[str] | None) -> list[Feature]:
    rows = [dict(payload) for payload in looked.seen(work)]
    column = picture_column(work.settings, rows)
    found: list[Feature] = []
    if column is not None:
        pictures = [_pixels(picture_of(work.settings, column, row)) for row in rows]
        found += picture_features(pictures, classes)
    hidden = {column, queue.SHOWN}
    return [*features_of([{name: row[name] for name in row if name not in hidden} for row in rows]), *found]


def _pixels(picture: object) -> Array | None:
    """A picture as numbers; None where it cannot be read."""
    if picture is None:
        return None
    pixels = arranged(picture)
    if isinstance(pixels, bytes):
        try:
            image = decoded(pixels, SIDE).convert("RGB")
        except UnshowableError:
            return None
        image.thumbnail((2 * SIDE, 2 * SIDE))
        return np.asarray(image)
    return None if isinstance(pixels, str) else pixels


def _told(
    group: Found, grouping: Grouping, looked: LookedAt, answers: Answers, wrong: Mapping[int, float], problem: Problem
) -> FailureGroup:
    """A group as the round has it: its size by the design, and examples, those that stand for most inputs.

    How sure it is stands on all rounds that were looked at, and is told of them.
    """
    tasks = looked.own.tasks
    failures, members = group.failures[: len(tasks)], group.members[: len(tasks)]  # the round's own come first
    own = [task for task, inside in zip(tasks, failures, strict=True) if inside]
    weights = weight_of(answers.sample) or {}
    first = sorted(own, key=lambda task: -weights.get(task.position, 0.0))[:EXAMPLES]
    pairs: Counter[str] = Counter()
    if traits(problem).of_classes:  # numbers and texts hardly ever come twice
        pairs.update(f"{readable(task.prediction, problem)} → {readable(task.truth or '', problem)}" for task in own)
    share = _ratio(answers, {task.position for task in own}, set(wrong))
    held = {task.position for task, inside in zip(tasks, members, strict=True) if inside}
    rate = _ratio(answers, set(wrong), held) if group.kind == "condition" else None
    at, number, words = (None, None, "") if group.since is None else looked.since(group.since)
    return FailureGroup(
        kind=group.kind,
        words=(*group.words, words) if words else group.words,
        failures=len(own),
        share=None if share is None else share.value,
        low=None if share is None else share.low,
        high=None if share is None else share.high,
        rate=None if rate is None else rate.value,
        lift=group.lift,
        lift_at_least=group.lift_at_least,
        p=group.p,
        examples=tuple(task.input_id for task in first),
        pairs=dict(pairs.most_common(3)) if all(len(pair) <= 80 for pair in pairs) else {},
        rounds=None if group.kind == "rest" else looked.rounds,
        since=None if at is None else at.isoformat(),
        since_round=number,
        differing=_differing(group, grouping),
    )


def _differing(group: Found, grouping: Grouping) -> Differing | None:
    """What the inputs since the onset differ in, where the group is one since then."""
    if grouping.onset is None or group.since != grouping.onset.at:
        return None
    shift = grouping.shift
    return Differing("") if shift is None else Differing(shift.words, shift.since, shift.before)


def _ratio(answers: Answers, of: set[int], among: set[int]) -> Estimate | None:
    """The share of some inputs among others, by the design of the draws; None where that does not tell."""
    estimator, positions = linear(answers.sample), answers.sample.draw.positions
    if estimator is None:
        return None
    members = _members(positions, among)
    values = _members(positions, of).astype(np.float64)
    try:
        return ratio(estimator, answers.sample, values, members, ACCURACY, problem="classification", highest=1.0)
    except InputError:
        return None


def _members(positions: NDArray[np.int64], some: set[int]) -> NDArray[np.bool_]:
    return np.isin(positions, np.fromiter(some, dtype=np.int64, count=len(some)))
