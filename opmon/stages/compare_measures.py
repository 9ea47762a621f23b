"""Two versions of a model by any measure: on the same labelled inputs where both can be asked, else each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opmon import label_sets
from opmon.adjudication import Asked
from opmon.config.measures import MeasureSettings
from opmon.decisions.measure_comparison import MeasureComparison, SliceDifference
from opmon.errors import InputError, ModelError
from opmon.estimators.paired import FEWEST, Pair, holm, paired_difference
from opmon.problems import traits
from opmon.queries.versions import COMBINED, VersionView, difference, version_views
from opmon.stages.compared import asked_of_both, require_two
from opmon.stages.estimate import read_answers
from opmon.stages.measures import rows_of
from opmon.stages.rivals import answers_of
from opmon.stages.slices import members_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.weights import linear
from opmon.store.rounds import Round
from opmon.types import ModelVersion, Numbers


def compare_measures(
    work: Toolbox,
    first: ModelVersion,
    second: ModelVersion,
    named: Sequence[str],
    newest: int | None = None,
    alpha: float = 0.05,
    *,
    fresh: bool = False,
) -> tuple[MeasureComparison, ...]:
    """By how much each of the ``named`` measures differs between two versions; the main one where none is named.

    Both are asked for their answers to every labelled draw of the last ``newest`` rounds. Where they cannot be, because
    answers are logged or people judged the outputs of one version, each has the rounds that it answered itself.
    """
    settings = work.settings
    require_two(first, second)
    try:
        measures = [settings.watched(name) for name in named] or [settings.watched(None)]
    except ValueError as exc:
        raise InputError(str(exc)) from exc
    if settings.scoring.by == "logged" or not traits(settings.problem).compares:
        if fresh:
            raise InputError(
                f"the versions of {work.name!r} are compared by rounds that each answered itself: no inputs were "
                "labelled for both of them; leave out --fresh"
            )
        return tuple(_apart(work, first, second, each, newest, alpha) for each in measures)
    pairs, before = asked_of_both(
        work, first, second, newest, lambda round_, last: _pair(work, round_, last, first, second), fresh=fresh
    )
    return tuple(_compared(work, each, pairs, before, alpha) for each in measures)


def _pair(work: Toolbox, round_: Round, last: Round, first: ModelVersion, second: ModelVersion) -> Pair:
    if round_.classes != last.classes:
        raise InputError("its classes are others than those of the newest")
    with work.store.read() as connection:
        answers = read_answers(connection, round_)
    estimator, draw = linear(answers.sample), answers.sample.draw
    if estimator is None:
        raise InputError(f"the design {draw.design!r} does not tell what its draws stand for")
    labelled = [task.position for task in answers.tasks if task.truth is not None]
    asked = [_as_said(answers.tasks, *answers_of(work, round_, model, labelled)) for model in (first, second)]
    for model, tasks in zip((first, second), asked, strict=True):
        require_classes(round_, model, tasks)
    one, two = (rows_of(round_, each, draw) for each in asked)
    slicing = round_.slicing
    slices = {} if slicing is None else {each.name: members_of(slicing, each, draw) for each in slicing.slices}
    both = one.answered & two.answered
    sample = replace(answers.sample, outcomes=np.where(both, answers.sample.outcomes, np.nan))
    return Pair(estimator, sample, one, two, slices)


def require_classes(round_: Round, model: ModelVersion, tasks: Sequence[Asked]) -> None:
    """Raise an error where a version says a class that nobody was asked about: in a set of several it would be lost,
    and what is wrong would count as right. Where an answer is one class, such a one is wrong as any other."""
    if round_.plan.problem != "multilabel":
        return
    said = {name for task in tasks for name in label_sets.members(task.prediction)}
    other = sorted(said - set(round_.classes or ()))
    if other:
        named = ", ".join(other[:5]) + (", …" if len(other) > 5 else "")
        raise ModelError(
            f"{model.uri} says classes that the labels of round {round_.number} know nothing of: {named}. Its measures "
            "cannot be compared on them: name no measure, so that versions are compared by which is right, or compare "
            "on rounds that it answered itself"
        )


def _as_said(tasks: Sequence[Asked], said: dict[int, str], scores: dict[int, Numbers]) -> list[Asked]:
    """The tasks with another version's answers; those that it gave none to are left out."""
    return [
        replace(task, prediction=said[task.position], scores=scores.get(task.position))
        for task in tasks
        if task.position in said
    ]


def _compared(
    work: Toolbox, chosen: MeasureSettings, pairs: Sequence[Pair], before: int, alpha: float
) -> MeasureComparison:
    measure, quantity = chosen.plugin, chosen.quantity(work.settings.unit)
    if measure.is_table:
        raise InputError(f"{quantity.name} is a table; name one of what it is made of, such as a recall or a precision")
    classes = pairs[-1].first.classes
    measure.check(classes)
    found = paired_difference(pairs, measure, quantity, 1 - alpha)
    parts = {}
    for name in dict.fromkeys(name for pair in pairs for name in pair.slices):
        try:
            part = paired_difference(pairs, measure, quantity, 1 - alpha, within=name)
        except InputError:  # nothing counts for the measure there
            continue
        if part.labels >= FEWEST:
            parts[name] = part
    differ = holm({name: part.chance for name, part in parts.items()}, alpha)
    slices = tuple(
        SliceDifference(name, part.difference, part.low, part.high, part.labels, name in differ)
        for name, part in sorted(parts.items(), key=lambda each: each[1].chance)
    )
    return MeasureComparison(
        quantity, found.first, found.second, found.difference, found.low, found.high, found.labels, found.differing,
        len(pairs), alpha, before, slices,
    )  # fmt: skip


def _apart(
    work: Toolbox,
    first: ModelVersion,
    second: ModelVersion,
    chosen: MeasureSettings,
    newest: int | None,
    alpha: float,
) -> MeasureComparison:
    """By the last ``newest`` rounds that each version answered itself: other inputs, and so a wider interval.

    It holds at the level of the rounds' own estimates, or at 1 − ``alpha`` where that is higher.
    """
    quantity = work.settings.quantity
    if chosen.quantity(work.settings.unit) != quantity:
        raise InputError(
            f"the versions of {work.name!r} answered different inputs, and are compared by the main measure alone, the "
            f"{quantity.name}; got {chosen.key!r}"
        )
    with work.store.read() as connection:
        views = version_views(connection, work.name, quantity, combined=newest or COMBINED)
    one, two = _newest_of(first, views), _newest_of(second, views)
    if one is None or two is None:
        lacking = [model.uri for model, view in ((first, one), (second, two)) if view is None]
        raise InputError(
            f"nothing was estimated of {' and '.join(lacking)} in monitor {work.name!r}: neither can be asked for "
            "other inputs, so each needs labelled rounds of its own"
        )
    level = min(one.estimate.level, two.estimate.level)
    found = difference(one.estimate, two.estimate).at(1 - alpha, level)
    return MeasureComparison(
        quantity, one.estimate.value, two.estimate.value, found.value, found.low, found.high, one.labels + two.labels,
        None, one.rounds + two.rounds, min(alpha, 1 - level),
    )  # fmt: skip


def _newest_of(model: ModelVersion, views: Sequence[VersionView]) -> VersionView | None:
    """Where rounds of a version have several levels, those of the newest."""
    return next((each for each in views if (each.model, each.version) == (model.name, model.version)), None)
