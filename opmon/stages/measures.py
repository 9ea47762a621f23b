"""What is estimated of a round, as its plan says, from what is known of its draws."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon import label_sets, plugins
from opmon.abc import Measure, Ratio
from opmon.adjudication import Asked
from opmon.config.measures import distinct
from opmon.errors import InputError, UnavailableError
from opmon.estimators.census import METHOD as CENSUS
from opmon.estimators.measured import measured, measured_gain, measured_tally
from opmon.estimators.tally import Tally
from opmon.quantities import Problem, Quantity
from opmon.scales import score_of
from opmon.stages.weights import linear
from opmon.store.measured import Measured
from opmon.store.plans import RoundPlan
from opmon.store.rounds import Round
from opmon.types import Draw, Estimate, Floats, Numbers, Sample
from opmon.types.labelled import Labelled
from opmon.waiting import Asking
from opmon.wording import none_of

if TYPE_CHECKING:
    from opmon.stages.estimate import Answers

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Planned:
    """A measure that the plan of a round names."""

    key: str
    measure: Measure
    quantity: Quantity
    is_main: bool
    """Whether it is the one that the round's estimate is of, and another one than is usual for its problem."""
    is_usual: bool
    """Whether it is the usual one of its problem, which the design's own estimator is for."""


UNASSISTED = "the proxy that was to assist is not known of this round: the estimate is by the labels alone"
MOST_PARTS = 1000
"""The most of one measure's parts, such as the cells of a table, that a round keeps."""
PATIENCE = 600.0
"""Seconds that a measure, and its interval, may take."""
_BY_LAGS = (
    "answers weigh by how soon truths like them came in earlier rounds; the interval does not know how sure that is"
)


def measures_of(plan: RoundPlan) -> tuple[Planned, ...]:
    """The measures that a plan names, in their order."""
    usual = plan.usual_quantity
    found = []
    for stored in plan.measures or ():
        parameters = {name: value for name, value in stored.items() if name != "type"}
        measure = plugins.make("measure", stored["type"], parameters)
        key, quantity = measure.quantity().name, distinct(measure.quantity(plan.unit), stored["type"], parameters)
        found.append(Planned(key, measure, quantity, key == plan.main, quantity == usual))
    return tuple(found)


def main_of(plan: RoundPlan) -> Planned | None:
    """The main measure; None where it is the usual one of the plan's problem."""
    return next((each for each in measures_of(plan) if each.is_main), None)


def estimate_of(answers: Answers, rows: Labelled, measure: Measure, quantity: Quantity, plan: RoundPlan) -> Estimate:
    """One measure by the design of the draws; an :class:`InputError` says why there is none."""
    estimator = linear(answers.sample)
    if estimator is None:
        raise InputError(f"the design {answers.sample.draw.design!r} does not tell what its draws stand for")
    guesses = None if answers.arrived is not None else answers.guesses
    estimate = _asking(quantity).call(
        lambda: measured(estimator, answers.sample, rows, measure, plan.unit, plan.level, guesses=guesses)
    )
    notes = (*estimate.notes, _BY_LAGS) if answers.arrived is not None else estimate.notes
    if plan.proxy is not None and guesses is None:
        notes = (*notes, UNASSISTED)
    return replace(estimate, quantity=quantity, notes=notes)


def _asking(quantity: Quantity) -> Asking:
    """A measure may be anybody's code, which may never end."""
    name = f"the measure {quantity.name!r}"
    return Asking(kind="measure", key=name, shown=name, target=name, seconds=PATIENCE, interrupts=True)


def tally_of(round_: Round, answers: Answers) -> Tally | None:
    """What the draws tell of the round's main measure, for an interval over several rounds and for the next plan.

    Where it is no mean of losses over all inputs, rounds are joined by their intervals, and it holds no more than what
    the design gained.
    """
    sample, main = answers.sample, main_of(round_.plan)
    if main is None:
        return plugins.make("estimator", sample.draw.design).tally(sample)
    rows, estimator = rows_of(round_, answers.tasks, sample.draw), linear(sample)
    gain = None if estimator is None else measured_gain(estimator, sample, rows, main.measure)
    tally = _tally_of_main(sample, main, rows)
    if gain is None:
        return tally
    return Tally.of_gain(gain) if tally is None else replace(tally, gain=gain)


def _tally_of_main(sample: Sample, main: Planned, rows: Labelled) -> Tally | None:
    ratio = main.measure.ratio(rows.only(rows.answered))
    if ratio is None or main.measure.needs_scores:
        return None
    if not (main.measure.tells_ratio or main.quantity.of_squares):
        return None
    if not ratio.is_mean:
        estimator = linear(sample)
        return None if estimator is None else measured_tally(estimator, sample, rows, main.measure)
    losses = _losses(ratio, main.quantity)
    if losses is None:
        return None
    outcomes = np.full(len(rows), np.nan)
    outcomes[rows.answered] = losses
    problem: Problem = "classification" if main.quantity.share else "regression"
    return plugins.make("estimator", sample.draw.design).tally(
        Sample(sample.draw, outcomes, problem, sample.propensity)
    )


def _losses(ratio: Ratio, quantity: Quantity) -> Floats | None:
    """The losses whose mean is the quantity, or its square, or for a share what it lacks to 1; None where there are
    none such."""
    if quantity.share and ratio.binary:
        return np.asarray(1 - ratio.numerator)
    if not quantity.share and ratio.lowest == 0:
        return ratio.numerator
    return None


def further(
    round_: Round, answers: Answers, usual: Callable[[], Estimate], whole: Labelled | None = None
) -> list[Measured]:
    """The measures of a round beside its main one, in the order of its plan; those that are not known say why.

    ``usual`` estimates the usual one of the problem, and ``whole`` is what is known of all inputs, where the truth of
    each has come.
    """
    planned = [each for each in measures_of(round_.plan) if not each.is_main]
    if round_.plan.main is None:
        planned = [each for each in planned if not each.is_usual]
    rows = rows_of(round_, answers.tasks, answers.sample.draw) if planned else None
    found: list[Measured] = []
    for each in planned:
        if rows is not None:
            found += _of_one(round_, answers, each, rows, usual, whole)
    return found


def _of_one(
    round_: Round,
    answers: Answers,
    planned: Planned,
    rows: Labelled,
    usual: Callable[[], Estimate],
    whole: Labelled | None,
) -> Iterator[Measured]:
    try:
        cells = parts_of(planned, rows.classes)
    except Exception as exc:  # noqa: BLE001 - a measure may be anybody's, and stops no other
        yield Measured(planned.key, planned.quantity, None, why_not(exc, planned, round_))
        return
    for cell in cells:
        quantity = planned.quantity if cell == planned.measure else cell.quantity(round_.plan.unit)
        try:
            if whole is not None and not cell.needs_scores:
                estimate = of_all(whole, cell, quantity, round_.plan)
            elif planned.is_usual:
                estimate = usual()
            else:
                estimate = estimate_of(answers, rows, cell, quantity, round_.plan)
        except Exception as exc:  # noqa: BLE001 - as above
            yield Measured(planned.key, quantity, None, why_not(exc, planned, round_))
        else:
            yield Measured(planned.key, quantity, estimate)


def parts_of(planned: Planned, classes: Sequence[str]) -> Sequence[Measure]:
    """The measures that one stands for, itself where it is no table; an error where it cannot be computed."""
    planned.measure.check(classes)
    cells = planned.measure.cells(classes)
    if len(cells) > MOST_PARTS:
        raise InputError(f"it has {len(cells):,} parts, and {MOST_PARTS:,} are the most that are kept of a measure")
    return cells


def why_not(problem: Exception, planned: Planned, round_: Round) -> str:
    """Why a measure is not known, in words; a fault of its own is also logged."""
    if isinstance(problem, InputError | UnavailableError):
        return str(problem)
    log.error("measure %s failed in round %d of %s", planned.key, round_.number, round_.monitor, exc_info=problem)
    return f"it failed: {type(problem).__name__}: {problem}"


def of_all(rows: Labelled, measure: Measure, quantity: Quantity, plan: RoundPlan) -> Estimate:
    """A measure of all inputs of a round, whose truth is known of each: nothing is estimated."""
    size = len(rows)
    ratio = measure.ratio(rows)
    if ratio is not None and not ratio.denominator.any():
        why = none_of(size, "input", "counts for it", "does not count for it")
        raise InputError(f"{quantity.name} is undefined: {why}")
    value = _asking(quantity).call(lambda: measure.value(rows, np.full(size, 1 / size)))
    return Estimate(
        *(value, value, value),
        n=size,
        frame_size=size,
        response=1.0,
        method=CENSUS,
        level=plan.level,
        quantity=quantity,
        standard_error=0.0,
        notes=("a census: every input has its truth, which is taken to be right", *measure.notes(rows)),
    )


def rows_of(round_: Round, tasks: Sequence[Asked], draw: Draw) -> Labelled:
    """What is known of every draw: the answer that counts, the model's own, and its scores."""
    of = {task.position: task for task in tasks}
    drawn = [of.get(int(position)) for position in draw.positions]
    answered = np.array([task is not None and task.truth is not None for task in drawn], dtype=np.bool_)
    truth = [task.truth if task is not None and task.truth is not None else "" for task in drawn]
    said = [task.prediction if task is not None else "" for task in drawn]
    classes = tuple(round_.classes or ())
    scores = [None if task is None else task.scores for task in drawn]
    return labelled(round_, answered, truth, said, _scores(scores, classes))


def labelled(
    round_: Round, answered: NDArray[np.bool_], truth: Sequence[str], said: Sequence[str], own: Numbers | None = None
) -> Labelled:
    """Answers and what the model said, which are text, as measures take them; empty text is no answer."""
    classes = tuple(round_.classes or ())
    match round_.plan.problem:
        case "regression":
            return Labelled(answered, _numbers(truth), _numbers(said))
        case "judged":
            given = np.array([score_of(text) if text else np.nan for text in truth])
            return Labelled(answered, given, np.full(len(given), np.nan))
        case "multilabel":
            return Labelled(answered, set_rows(truth, classes), set_rows(said, classes), own, classes)
    return Labelled(answered, np.array(truth, np.str_), np.array(said, np.str_), own, classes)


def _numbers(texts: Sequence[str]) -> Floats:
    return np.array([float(text) if text else np.nan for text in texts])


def set_rows(texts: Sequence[str], classes: Sequence[str]) -> NDArray[np.bool_]:
    """One row for each set and one column for each class: whether it is in the set."""
    said = [set(label_sets.members(text)) if text else set() for text in texts]
    return np.array([[name in own for name in classes] for own in said], dtype=np.bool_).reshape(
        len(said), len(classes)
    )


def _scores(known: Sequence[Numbers | None], classes: tuple[str, ...]) -> Numbers | None:
    if all(own is None for own in known):
        return None
    none = np.full(len(classes), np.nan, np.float32)
    return np.stack([own if own is not None and len(own) == len(classes) else none for own in known])
