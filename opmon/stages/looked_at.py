"""The labelled inputs that causes of failures are looked for in: a round's own first, then those of the rounds before.

They make a window of the same model version that does not grow with the age of the monitor.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from opmon.adjudication import Asked
from opmon.causes import Moments
from opmon.config.monitor import LOOKED_BACK
from opmon.problems import traits
from opmon.stages.captured import payloads
from opmon.stages.estimate import Answers, read_answers
from opmon.stages.failing import failing
from opmon.stages.toolbox import Toolbox, folder_of
from opmon.stages.weights import weight_of
from opmon.store import attachments, queue, revisions, rounds
from opmon.store.engine import Connection
from opmon.store.rounds import Round
from opmon.types import Floats, Json

MOST = 2000
"""So many labelled inputs are looked at; of a round that has more, all failures first, and some of the others."""
FEWEST = 30
"""Where fewer can be taken of a round before, none are: they would tell nothing of it."""
HEAVY = 64 << 20
"""So many bytes of pictures and the like are read of the rounds before at most."""


@dataclass(frozen=True, eq=False)
class OfRound:
    """Labelled inputs of one round."""

    round: Round
    tasks: Sequence[Asked]
    failed: NDArray[np.bool_]
    weights: Floats | None
    """How many inputs each stands for; None where the design does not tell."""

    @property
    def at(self) -> Floats:
        """When each input came; where that is not known, when its round ended."""
        otherwise = self.round.ends_at or self.round.opened_at
        return np.array([(task.input_at or otherwise).timestamp() for task in self.tasks])

    @property
    def is_timed(self) -> bool:
        """Whether it is known of each input when it came."""
        return all(task.input_at is not None for task in self.tasks)

    @property
    def start(self) -> float:
        """When it began."""
        first, began = float(self.at.min()), self.round.starts_at
        return min(began.timestamp(), first) if began is not None and self.is_timed else first


@dataclass(frozen=True, eq=False)
class LookedAt:
    """The inputs of a round and of those before it; its own come first."""

    parts: Sequence[OfRound]

    @property
    def own(self) -> OfRound:
        return self.parts[0]

    @property
    def tasks(self) -> list[Asked]:
        return [task for part in self.parts for task in part.tasks]

    @property
    def failed(self) -> NDArray[np.bool_]:
        return np.concatenate([part.failed for part in self.parts])

    @property
    def weights(self) -> Floats | None:
        known = [part.weights for part in self.parts if part.weights is not None]
        return np.concatenate(known) if len(known) == len(self.parts) else None

    @property
    def moments(self) -> Moments:
        numbers = [np.full(len(part.tasks), part.round.number) for part in self.parts]
        starts = {part.round.number: part.start for part in self.parts}
        return Moments(np.concatenate([part.at for part in self.parts]), np.concatenate(numbers), starts)

    @property
    def rounds(self) -> tuple[int, int] | None:
        """The first and the last of them; None where there is one."""
        numbers = [part.round.number for part in self.parts]
        return (min(numbers), max(numbers)) if len(numbers) > 1 else None

    def seen(self, work: Toolbox) -> list[Mapping[str, Json]]:
        """What annotators saw of each input."""
        return [payload for part in self.parts for payload in _seen(work, part)]

    def since(self, moment: float) -> tuple[datetime, int, str]:
        """A moment, the round it lies in, and both in words."""
        later = [(at, part) for part in self.parts for at in part.at.tolist() if at >= moment]
        part = min(later, key=lambda each: each[0])[1]
        at, number = (
            datetime.fromtimestamp(moment, (part.round.ends_at or part.round.opened_at).tzinfo),
            part.round.number,
        )
        if not part.is_timed:
            return at, number, f"since round {number}"
        inside = "" if moment == part.start else "in "
        return at, number, f"since {at:%d %b %Y, %H:%M} UTC ({inside}round {number})"


def looked_at(work: Toolbox, round_: Round, answers: Answers) -> LookedAt | None:
    """The labelled inputs of a round, with those of the rounds before as far as there is room; None where the round has
    no failure."""
    own = _of_round(round_, answers)
    if not own.failed.any():
        return None
    room = MOST - len(own.tasks)
    if room < 0:
        return LookedAt([_sampled(own, failures_first=True)])
    if own.weights is None or not _has_a_line(round_):
        return LookedAt([own])
    with work.store.read() as connection:
        return LookedAt([own, *_before(connection, round_, room)])


def _has_a_line(round_: Round) -> bool:
    """Whether it does not depend on the round itself what is a failure: where the largest errors are, each has some."""
    return not (traits(round_.plan.problem).of_numbers and round_.plan.tolerance is None)


def _before(connection: Connection, round_: Round, room: int) -> list[OfRound]:
    """Those of the rounds before with a final estimate and the same line between right and wrong, the newest first."""
    newest = rounds.newest(connection, round_.monitor, LOOKED_BACK, before=round_.number)
    line = round_.plan.problem, round_.plan.tolerance
    mine = [
        each
        for each in newest
        if each.model == round_.model
        and each.draw is not None
        and each.labels_pruned_at is None
        and (each.plan.problem, each.plan.tolerance) == line
    ]
    final = revisions.latest_of(connection, [each.id for each in mine])
    found: list[OfRound] = []
    heavy = HEAVY
    for each in mine:
        if room < FEWEST:
            break
        if each.id not in final or final[each.id].estimate.provisional:
            continue
        part = _of_round(each, read_answers(connection, each, payloads=False))
        if part.weights is None:
            continue
        part = _within(_with_payloads(connection, _sampled(part, room)), heavy)
        if part.tasks:
            found.append(part)
            room -= len(part.tasks)
            heavy -= sum(attachments.size_of(task.payload) for task in part.tasks)
    return found


def _of_round(round_: Round, answers: Answers) -> OfRound:
    tasks = [task for task in answers.tasks if task.truth is not None]
    wrong, weights = failing(answers.sample, round_.plan), weight_of(answers.sample)
    failed = np.array([task.position in wrong for task in tasks], dtype=np.bool_)
    stand = None if weights is None else np.array([max(weights.get(task.position, 0.0), 0.0) for task in tasks])
    return OfRound(round_, tasks, failed, stand)


def _sampled(part: OfRound, most: int = MOST, *, failures_first: bool = False) -> OfRound:
    """So many of its inputs at most, by chance; ``failures_first`` leaves out right answers alone while there are some,
    which no other round can be held against."""
    if len(part.tasks) <= most:
        return part
    order = np.random.default_rng([part.round.plan.seed, len(part.tasks)]).permutation(len(part.tasks))
    if failures_first:
        order = order[np.argsort(~part.failed[order], kind="stable")]
    return _only(part, np.sort(order[:most]))


def _only(part: OfRound, places: NDArray[np.int64]) -> OfRound:
    weights = None if part.weights is None else part.weights[places]
    return replace(part, tasks=[part.tasks[at] for at in places.tolist()], failed=part.failed[places], weights=weights)


def _with_payloads(connection: Connection, part: OfRound) -> OfRound:
    """With what annotators saw; inputs of which that was pruned are left out."""
    known = queue.payloads(connection, [task.task_id for task in part.tasks if task.task_id is not None])
    tasks = [replace(task, payload=known.get(task.task_id or 0, {})) for task in part.tasks]
    there = [at for at, task in enumerate(tasks) if task.payload and not attachments.is_erased(task.payload)]
    return _only(replace(part, tasks=tasks), np.array(there, dtype=np.int64))


def _within(part: OfRound, heavy: int) -> OfRound:
    """As many of its inputs, by chance, as have so many bytes kept beside what annotators saw."""
    sizes = np.array([attachments.size_of(task.payload) for task in part.tasks], dtype=np.int64)
    if sizes.sum() <= heavy:
        return part
    order = np.random.default_rng([part.round.plan.seed, len(sizes)]).permutation(len(sizes))
    count = int((np.cumsum(sizes[order]) <= heavy).sum())
    return _only(part, np.sort(order[: count if count >= FEWEST else 0]))


def _seen(work: Toolbox, part: OfRound) -> list[Mapping[str, Json]]:
    """What annotators saw; what is fetched for that of a round that is over does not stay on this machine."""
    folder = folder_of(work.folder, part.round)
    was_there = folder.exists()
    try:
        return payloads(work, part.round, part.tasks)
    finally:
        if not was_there:
            shutil.rmtree(folder, ignore_errors=True)
