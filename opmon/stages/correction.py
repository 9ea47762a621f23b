"""The estimate of a round corrected for annotators who err, and whose answer counts where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opmon import plugins
from opmon.adjudication import Asked
from opmon.annotators import (
    Coded,
    Opinion,
    by_class,
    by_expert,
    by_middle,
    by_weight,
    corrected,
    denoised,
    fit,
    krippendorff,
    percent_agreement,
)
from opmon.problems import traits
from opmon.replies import Replies
from opmon.stages.weights import linear
from opmon.store import checked
from opmon.store.corrections import SETTLED, Corrected
from opmon.store.engine import Connection
from opmon.store.rounds import Round
from opmon.types import Estimate

if TYPE_CHECKING:
    from opmon.stages.estimate import Answers

GOLD, BEFORE = 1, 2
"""The groups of gold tasks, and of inputs of earlier rounds: their failure rates are their own."""


def ruled(round_: Round, tasks: Sequence[Asked]) -> Sequence[Asked]:
    """The tasks with the answers that count, of a round that does not go by the majority.

    What the likeliest answer is follows from the labels of the round alone, so that what was once estimated from them
    stays so whatever is learned of the annotators later.
    """
    differ = [at for at, task in enumerate(tasks) if len(set(task.answered.values())) > 1]
    if not differ:
        return tasks
    right = round_.plan.replies(round_.classes).right
    opinions = [opinion_of(task, right=right) for task in tasks]
    decides = round_.plan.adjudication
    if decides == "expert":
        rulings = {at: by_expert(opinions[at], round_.plan.experts or ()) for at in differ}
    elif decides == "by_class":
        rulings = {at: by_class(opinions[at]) for at in differ}
    elif decides in ("mean", "median"):
        scores = not traits(round_.plan.problem).of_numbers
        rulings = {at: by_middle(opinions[at], decides, scores=scores) for at in differ}
    else:
        said = [at for at, opinion in enumerate(opinions) if opinion.answers]
        model = fit(Coded.of([opinions[at] for at in said]), np.ones(len(said)), classes_of(round_, opinions))
        row = {at: place for place, at in enumerate(said)}
        likely = by_weight(model, {row[at]: opinions[at] for at in differ})
        rulings = {at: likely[row[at]] for at in differ}
    return [replace(task, ruling=rulings[at].truth) if at in rulings else task for at, task in enumerate(tasks)]


def correction_of(connection: Connection, round_: Round, answers: Answers, plain: Estimate) -> Corrected | None:
    """The final estimate of a round corrected for annotators who err, or why it cannot be; None where no answer of
    them is there to check another, now or before."""
    right = round_.plan.replies(round_.classes).right
    own = {task.position: opinion_of(task, right=right) for task in answers.tasks if task.truth is not None}
    if not any(opinion.answers for opinion in own.values()):
        return None
    gold = [opinion_of(task, GOLD) for task in checked.gold_said(connection, round_.monitor)]
    before = [
        opinion_of(task, BEFORE, right=right) for task in checked.said_before(connection, round_.monitor, round_.number)
    ]
    others = [opinion for opinion in (*gold, *before) if opinion.answers]
    if not sum(opinion.checks for opinion in (*own.values(), *others)):
        return None
    estimator = linear(answers.sample)
    found = _agreement(answers.tasks, round_.plan.replies(round_.classes))
    if round_.plan.main is not None:
        usual = round_.plan.usual_quantity.name
        return replace(found, why=f"what annotators' errors do is known of the {usual}, and not of {round_.plan.main}")
    design = plugins.make("estimator", answers.sample.draw.design)
    if estimator is None or design.variance(answers.sample, answers.sample.outcomes) is None:
        why = f"the design {answers.sample.draw.design!r} does not tell what its draws stand for: nothing to correct by"
        return replace(found, why=why)
    if round_.plan.problem == "multilabel":
        return replace(found, why="how annotators err who say several classes at once is not known")
    asks = round_.plan.replies(round_.classes)
    if asks.are_far_apart and not traits(asks.problem).of_numbers:
        return replace(found, why="a mean score is not moved by errors that are as often up as down")
    if traits(round_.plan.problem).of_numbers:
        if round_.plan.adjudication is not None:
            who = (
                "named people's numbers count" if round_.plan.adjudication == "expert" else "a middle of numbers counts"
            )
            return replace(found, why=f"{who}: how far these lie from the truth is not known")
        numbers = {
            at: [] if opinion.truth is not None else [float(answer) for answer in opinion.answers.values()]
            for at, opinion in own.items()
        }
        less = denoised(estimator, answers.sample, numbers, plain.level)
        return _with(replace(found, why=less.why, checks=less.inputs), less.estimate)
    classes = classes_of(round_, [*own.values(), *others])
    result = corrected(estimator, answers.sample, own, others, classes=classes, level=plain.level)
    return _with(replace(found, why=result.why, checks=result.checks), result.estimate)


def told(plain: Estimate, found: Corrected | None) -> Estimate:
    """The plain estimate with a note of the corrected one, where there is one."""
    if found is None or found.interval is None:
        return plain
    text = plain.quantity.interval(*found.interval) if found.moves(plain) else SETTLED
    note = f"corrected for annotators who err, from {found.checks:,} checked answers: {text}"
    return replace(plain, notes=(*plain.notes, note))


def opinion_of(task: Asked, group: int = 0, *, right: str | None = None) -> Opinion:
    """What was said of a task; of a gold task the model's answer is left aside, since nobody asked the model.

    ``right`` is the answer by which the model is right, where that is not its own: an output that is judged passes.
    """
    if task.gold is not None:
        return Opinion(task.answered, None, task.gold, group)
    prediction = task.prediction if right is None else right
    return Opinion(task.answered, prediction, None if task.arrived is None else task.arrived.truth, group)


def classes_of(round_: Round, opinions: Sequence[Opinion]) -> int:
    """How many classes there are: those of the model, or else those that occur."""
    if round_.classes:
        return max(len(round_.classes), 2)
    occur = {answer for opinion in opinions for answer in (*opinion.answers.values(), opinion.prediction)}
    return max(len(occur - {None}), 2)


def _agreement(tasks: Sequence[Asked], asks: Replies) -> Corrected:
    units = [list(task.answered.values()) for task in tasks]
    agreement = None if asks.are_far_apart else percent_agreement(units).value
    alpha = krippendorff(
        [[*map(asks.comparable, unit)] for unit in units], "interval" if asks.are_far_apart else "nominal"
    ).value
    return Corrected(None, None, None, None, "", 0, agreement, alpha)


def _with(found: Corrected, estimate: Estimate | None) -> Corrected:
    if estimate is None:
        return found
    return replace(
        found, value=estimate.value, low=estimate.low, high=estimate.high, standard_error=estimate.standard_error
    )
