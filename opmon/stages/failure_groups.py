"""What the failures of a round have in common: a few causes instead of many cases.

What annotators saw of the labelled inputs, right and wrong ones, is described (columns, words of texts, statistics of
pictures), and :mod:`opmon.causes` finds what sets the failures apart. Sizes are by the design of the draws.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from opmon.adjudication import Asked
from opmon.causes import Found, failure_groups, features_of, picture_features
from opmon.causes.features import Feature
from opmon.errors import InputError
from opmon.estimators.ratios import ratio
from opmon.problems import traits
from opmon.quantities import ACCURACY
from opmon.reports.pixels import UnshowableError, arranged, decoded
from opmon.stages.captured import payloads
from opmon.stages.estimate import Answers
from opmon.stages.failing import failing
from opmon.stages.failure_pictures import picture_column, picture_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.weights import linear, weight_of
from opmon.store import queue
from opmon.store.rounds import Round
from opmon.types import Array, Estimate, Json
from opmon.types.grouped import FailureGroup

log = logging.getLogger(__name__)

MOST = 2000
"""So many labelled inputs are looked at; of more, all failures first, and a random sample of the others."""
EXAMPLES = 5
SIDE = 64
"""Pictures are looked at with about so many pixels a side."""

Payload = Mapping[str, Json]


def group_failures(work: Toolbox, round_: Round, answers: Answers) -> tuple[FailureGroup, ...]:
    """The groups of a round's failures, the largest first; empty where there is none, or no telling them apart."""
    try:
        return _grouped(work, round_, answers)
    except Exception:  # anybody's data: a group is a hint, and no reason to lose a round
        log.warning("the failures of round %d of %s are not grouped", round_.number, work.name, exc_info=True)
        return ()


def _grouped(work: Toolbox, round_: Round, answers: Answers) -> tuple[FailureGroup, ...]:
    wrong = failing(answers.sample, round_.plan)
    if not wrong:
        return ()
    tasks = _looked_at([task for task in answers.tasks if task.truth is not None], wrong, round_.plan.seed)
    failed = np.array([task.position in wrong for task in tasks])
    weights = weight_of(answers.sample)
    stands = None if weights is None else np.array([max(weights.get(task.position, 0.0), 0.0) for task in tasks])
    classes = traits(round_.plan.problem).compares and not traits(round_.plan.problem).of_numbers
    said, true = [task.prediction for task in tasks], [task.truth or "" for task in tasks]
    grouping = failure_groups(
        _features(work, round_, tasks, true if classes else None),
        failed,
        stands,
        predicted=said if classes else None,
        truth=true if classes else None,
        seed=round_.plan.seed,
    )
    found = [_told(group, tasks, answers, wrong) for group in grouping.groups]
    return tuple(sorted(found, key=lambda each: (each.kind == "rest", -(each.share or 0.0), -each.failures)))


def _looked_at(tasks: Sequence[Asked], wrong: Mapping[int, float], seed: int) -> list[Asked]:
    if len(tasks) <= MOST:
        return list(tasks)
    order = np.random.default_rng([seed, len(tasks)]).permutation(len(tasks))
    first = sorted(order.tolist(), key=lambda at: tasks[at].position not in wrong)
    return [tasks[at] for at in sorted(first[:MOST])]


def _features(work: Toolbox, round_: Round, tasks: Sequence[Asked], classes: Sequence[str] | None) -> list[Feature]:
    rows = [dict(payload) for payload in payloads(work, round_, tasks)]
    column = picture_column(work.settings, rows)
    found: list[Feature] = []
    if column is not None:
        pictures = [
            _pixels(picture_of(work.settings, column, row, task.input_id))
            for row, task in zip(rows, tasks, strict=True)
        ]
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
        return np.asarray(image, dtype=np.float32)
    return None if isinstance(pixels, str) else pixels


def _told(group: Found, tasks: Sequence[Asked], answers: Answers, wrong: Mapping[int, float]) -> FailureGroup:
    """A group with its size by the design, and examples: those that stand for most inputs."""
    own = [task for task, inside in zip(tasks, group.failures, strict=True) if inside]
    weights = weight_of(answers.sample) or {}
    first = sorted(own, key=lambda task: -weights.get(task.position, 0.0))[:EXAMPLES]
    pairs = Counter(f"{task.prediction} → {task.truth}" for task in own)
    share = _ratio(answers, {task.position for task in own}, set(wrong))
    held = {task.position for task, inside in zip(tasks, group.members, strict=True) if inside}
    rate = _ratio(answers, set(wrong), held) if group.kind == "condition" else None
    return FailureGroup(
        kind=group.kind,
        words=group.words,
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
    )


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
