"""A judge whose answers are labels because the user says so (``as_labels``): nobody checks them, as notes say."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from opmon.adjudication import Asked
from opmon.config.kinds import JudgeSettings
from opmon.errors import UnavailableError
from opmon.stages.beside import frame_path
from opmon.stages.judging import named_answer, opinions
from opmon.stages.judging_model import answers_of_model
from opmon.stages.toolbox import Toolbox
from opmon.store import queue, rounds
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.types import Label

log = logging.getLogger(__name__)

JUDGE = "judge "
"""What the name of an annotator that is a judge begins with."""


def label_by_judge(work: Toolbox, round_: Round) -> int:
    """Record the judge's answers to the tasks that nobody has spoken of; gives how many those are.

    One that it cannot tell stays open, for people. Done again, it asks about what has no label only.
    """
    judge = work.settings.judge
    if judge is None or not judge.as_labels or round_.state != RoundState.LABELLING:
        return 0
    with work.store.read() as connection:
        waiting = {task.position: task for task in queue.answers(connection, round_.id) if not task.is_spoken_of}
    if not waiting:
        return 0
    try:
        answers = _answers(work, round_, judge, sorted(waiting))
    except UnavailableError as exc:  # what people and time say of the round goes on
        log.warning("round %d of %s has no labels of its judge yet: %s", round_.number, work.name, exc)
        with work.write() as connection:
            rounds.update(connection, round_.id, problem=f"its judge gives no labels yet: {exc}")
        return 0
    name, now = JUDGE + judge.type, work.clock()
    labels = [Label(waiting[position].task_id or 0, name, answer, now) for position, answer in answers.items()]
    with work.write() as connection:
        return queue.record_possible(connection, labels, now)[0].new


def unchecked(tasks: Sequence[Asked]) -> tuple[str, ...]:
    """A note on labels that are a judge's alone."""
    judged = [
        task for task in tasks if task.truth is not None and all(each.startswith(JUDGE) for each in task.annotators)
    ]
    if not judged:
        return ()
    answered = sum(task.truth is not None for task in tasks)
    who = judged[0].annotators[0]
    return (
        f"{len(judged):,} of {answered:,} labels are answers of the {who}, which nobody has checked: where it errs, "
        "this estimate is of how often the model agrees with it",
    )


def _answers(work: Toolbox, round_: Round, judge: JudgeSettings, waiting: Sequence[int]) -> dict[int, str]:
    """The judge's answers by position, as far as it can tell."""
    positions, path = np.array(waiting, np.int64), frame_path(work, round_)
    if judge.plugin.registered is not None:
        pieces = answers_of_model(work, round_, path, positions, judge.plugin.registered)
        return {
            int(positions[place]): str(answer)
            for places, answers, _ in pieces
            for place, answer in zip(places.tolist(), answers.tolist(), strict=True)
        }
    found = zip(positions.tolist(), opinions(work, round_, path, positions, judge), strict=True)
    named = {position: named_answer(work, round_, each) for position, each in found if each is not None}
    return {position: answer for position, answer in named.items() if answer is not None}
