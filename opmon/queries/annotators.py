"""Annotators at a glance: what each has said, how far they agree, how often each errs, and who needs a word."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from opmon.adjudication import TRUTH, Asked
from opmon.annotators import (
    Agreement,
    AnnotatorError,
    Coded,
    Opinion,
    cohen,
    fit,
    fleiss,
    krippendorff,
    percent_agreement,
)
from opmon.replies import Replies
from opmon.store import checked, rounds
from opmon.store.engine import Connection
from opmon.wording import percent

ENOUGH = 20
"""Checked answers before somebody is told to be worse than others."""
FAR = 2.0
"""So many times the error of the others."""


@dataclass(frozen=True)
class AnnotatorView:
    """What one annotator has said, and how well."""

    annotator: str
    answers: int
    skips: int
    seconds: float | None
    """The median time of an answer; None where no provider told it."""
    agreement: float | None
    """The share of others' answers to the same inputs that are theirs; None where nobody else answered them."""
    gold: int
    """Their answers to gold tasks, and those of them that are right."""
    gold_right: int
    error: AnnotatorError | None
    """How often they err, as overlap, gold tasks and truth that arrived tell; None of numbers."""


@dataclass(frozen=True)
class TeamView:
    """The annotators of a monitor over its newest rounds."""

    monitor: str
    rounds: int
    inputs: int
    """Inputs that two annotators or more have answered."""
    agreement: Agreement | None
    """The share of pairs of answers that are the same; None of numbers."""
    kappa: Agreement | None
    """Cohen's of two annotators, Fleiss' of more; None of numbers."""
    alpha: Agreement
    """Krippendorff's."""
    annotators: tuple[AnnotatorView, ...]
    needs: tuple[str, ...]
    """What a person should look at."""


def team_view(connection: Connection, monitor: str, count: int) -> TeamView:
    """The annotators of a monitor over its newest ``count`` rounds, and over its gold tasks."""
    drawn, gold = checked.said_lately(connection, monitor, count), checked.gold_said(connection, monitor)
    newest = rounds.newest(connection, monitor, 1)
    asks = newest[0].plan.replies(newest[0].classes) if newest else Replies()
    units = [list(task.answered.values()) for task in drawn]
    errors = {} if asks.are_far_apart else _errors([*drawn, *gold], asks)
    views = _views(drawn, gold, errors)
    names = {name for task in drawn for name in task.answered}
    kappa = _kappa(drawn, sorted(names))
    return TeamView(
        monitor=monitor,
        rounds=count,
        inputs=sum(len(unit) > 1 for unit in units),
        agreement=None if asks.are_far_apart else percent_agreement(units),
        kappa=None if asks.are_far_apart else kappa,
        alpha=krippendorff(
            [[*map(asks.comparable, unit)] for unit in units], "interval" if asks.are_far_apart else "nominal"
        ),
        annotators=views,
        needs=_needs([view.error for view in views if view.error is not None]),
    )


def _kappa(drawn: Sequence[Asked], names: Sequence[str]) -> Agreement:
    if len(names) == 2:
        return cohen([[task.answered.get(name) for name in names] for task in drawn])
    return fleiss([list(task.answered.values()) for task in drawn])


def _errors(tasks: Sequence[Asked], asks: Replies) -> dict[str, AnnotatorError]:
    said = [_opinion(task, asks.right) for task in tasks if task.answered]
    if not any(opinion.checks for opinion in said):
        return {}
    occur = {answer for opinion in said for answer in (*opinion.answers.values(), opinion.prediction)}
    classes = len(asks.classes or ()) if asks.problem == "classification" else 0
    model = fit(Coded.of(said), np.ones(len(said)), max(classes or len(occur - {None}), 2))
    return {each.annotator: each for each in model.errors() if each.checked}


def _opinion(task: Asked, right: str | None) -> Opinion:
    if task.gold is not None:
        return Opinion(task.answered, None, task.gold, 1)
    return Opinion(task.answered, right or task.prediction, None if task.arrived is None else task.arrived.truth)


def _views(
    drawn: Sequence[Asked], gold: Sequence[Asked], errors: Mapping[str, AnnotatorError]
) -> tuple[AnnotatorView, ...]:
    answers, skips, measured, right = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    pairs, same = Counter[str](), Counter[str]()
    seconds: dict[str, list[float]] = defaultdict(list)
    for task in (*drawn, *gold):
        for name in set(task.annotators) - {TRUTH}:
            answers[name] += name in task.answered
            skips[name] += name not in task.answered
        for label in task.labels:
            if label.seconds is not None:
                seconds[label.annotator].append(label.seconds)
    for task in gold:
        measured.update(list(task.answered))
        right.update(name for name, answer in task.answered.items() if answer == task.gold)
    for task in drawn:
        for name, answer in task.answered.items():
            others = [other for another, other in task.answered.items() if another != name]
            pairs[name] += len(others)
            same[name] += others.count(answer)
    return tuple(
        AnnotatorView(
            annotator=name,
            answers=answers[name],
            skips=skips[name],
            seconds=median(seconds[name]) if seconds[name] else None,
            agreement=same[name] / pairs[name] if pairs[name] else None,
            gold=measured[name],
            gold_right=right[name],
            error=errors.get(name),
        )
        for name in sorted(answers)
    )


def _needs(errors: Sequence[AnnotatorError]) -> tuple[str, ...]:
    """Who errs far more often than the others."""
    found = []
    for each in errors:
        others = [other.error for other in errors if other is not each]
        usual = median(others) if others else 0.0
        if others and each.checked >= ENOUGH and each.error > FAR * usual and each.low > usual:
            interval = f"{percent(each.error)} [{percent(each.low)}, {percent(each.high)}]"
            found.append(
                f"{each.annotator} errs on {interval} of the inputs, the others on {percent(usual)}: look at some of "
                f"these answers together, and at the guidelines"
            )
    return tuple(found)
