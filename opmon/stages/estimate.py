"""labelling → estimated: from the labels so far to an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from opmon import plugins
from opmon.adjudication import Asked
from opmon.errors import InputError
from opmon.estimators._linear import LinearEstimator
from opmon.estimators.guesses import Guesses
from opmon.estimators.lagged import Arrived
from opmon.estimators.model_assisted import assisted
from opmon.estimators.propensity import weighed
from opmon.estimators.proxies import Proxy
from opmon.estimators.scores import of_scores
from opmon.estimators.worst_case import worst_case
from opmon.jobs.thinning import Thinning
from opmon.problems import Problem, loss, traits
from opmon.quantities import Quantity
from opmon.stages import correction, losses
from opmon.stages.census import Whole, measured, told
from opmon.stages.close import close_without_estimate, in_words
from opmon.stages.draw import draw_next_wave
from opmon.stages.failing import failing
from opmon.stages.guesses import guesses_of, named
from opmon.stages.judged_labels import unchecked
from opmon.stages.lags import arrived_of, asked_for_the_rest, awaits, by_lags, one_sided, waits_alone
from opmon.stages.measures import UNASSISTED, Planned, estimate_of, further, main_of, rows_of, tally_of
from opmon.stages.slices import slices_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.weights import linear
from opmon.store import draws, pruned, queue, revisions, rounds
from opmon.store.engine import Connection
from opmon.store.measured import Measured
from opmon.store.plans import RoundPlan
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.types import Draw, Estimate, Sample
from opmon.wording import percent

LOW = 0.8
"""With a smaller share of answers an estimate says how far the missing ones could lead."""


@dataclass(frozen=True)
class Answers:
    """All tasks of a round with their answers, and the sample they make."""

    tasks: Sequence[Asked]
    sample: Sample
    labels_seen: int
    arrived: Arrived | None = None
    """How likely the truth of each draw was to have come, where only truths have, and not all of them."""
    guesses: Guesses | None = None
    """What a proxy has guessed of the draws, where other measures than the usual one are estimated."""

    @property
    def settled(self) -> bool:
        """Whether of every task all was said that was asked."""
        return not any(task.lacks for task in self.tasks)

    def failures(self, plan: RoundPlan) -> list[Asked]:
        """The answered tasks on which the model fails, the worst ones first."""
        wrong = failing(self.sample, plan)
        found = [task for task in self.tasks if task.position in wrong]
        return sorted(found, key=lambda task: -wrong[task.position])

    @property
    def returned(self) -> int:
        return sum(task.truth is not None for task in self.tasks)


def estimate_round(work: Toolbox, round_: Round) -> bool:
    """Estimate from the labels there are; false where there is nothing new to say.

    Final once every task is settled or the deadline is over, provisional before. A round with a final estimate is
    estimated again when late labels have come in. The deadline also ends the waves of an adaptive sampler.
    """
    if round_.draw is None:
        return False  # it was closed without a single input to draw from, or its labels were pruned
    with work.store.read() as connection:
        known = revisions.latest_estimate(connection, round_.id)
        answers = read_answers(connection, round_)
    over = round_.deadline_at is not None and work.clock() >= round_.deadline_at
    waits = round_.state == RoundState.LABELLING
    unspent = len(answers.sample.draw) < round_.plan.budget
    if unspent and answers.settled and waits and not over and draw_next_wave(work, round_, answers.sample):
        return True
    truth, whole = work.settings.truth, None
    if truth is not None:
        whole = measured(work, round_, truth, known, answers.labels_seen, answers.settled)
    final = answers.settled or over or not waits or whole is not None
    if known is not None and known.labels_seen == answers.labels_seen and not _is_better(known.estimate, final, whole):
        return False
    if whole is not None:
        _save(work, round_, answers, _told(round_, whole.estimate), whole=whole)
        told(work, round_)
        return True
    if not answers.returned:
        return _nothing_came(work, round_, answers) if final and waits else False
    answers = replace(answers, guesses=guesses_of(work, round_, answers.sample.draw))
    main = main_of(round_.plan)
    try:
        estimate = _estimate(round_, answers, main, provisional=not final)
    except InputError as exc:
        if not final:
            return False  # too few answers for this design yet
        if main is not None:
            return _main_is_not_told(work, round_, answers, main, exc) if waits else False
        raise InputError(f"round {round_.number} cannot be estimated: {exc}") from exc
    _save(work, round_, answers, estimate)
    return True


def _is_better(known: Estimate, final: bool, whole: Whole | None) -> bool:
    """Whether the same labels say more by now: they are all there are, or those of all inputs have come."""
    return (final and known.provisional) or (whole is not None and known.method != whole.estimate.method)


def read_answers(connection: Connection, round_: Round, *, payloads: bool = True) -> Answers:
    """What the annotators said of a round, joined with its draw; without ``payloads`` not what they said it of.

    An error where that was pruned: what was found out from it stays, and nothing new is.
    """
    if round_.labels_pruned_at is not None:
        raise InputError(f"its {pruned.words(round_.labels_pruned_at)}; its estimate stays as it is")
    seen = queue.count(connection, round_.id)
    tasks: Sequence[Asked] = queue.answers(connection, round_.id, payloads=payloads)
    if round_.plan.adjudication is not None:
        tasks = correction.ruled(round_, tasks)
    draw = draws.unpack_draw(round_.draw or b"")
    outcome = {task.position: _loss(task, round_.plan.problem) for task in tasks}
    outcomes = np.array([outcome.get(int(position), np.nan) for position in draw.positions], dtype=np.float64)
    sample = Sample(draw, outcomes, round_.plan.problem)
    if not sample.answered.any() or sample.answered.all():
        return Answers(tasks, sample, seen)
    if any(task.arrived for task in tasks):
        arrived = arrived_of(connection, round_, tasks, draw)
        if arrived is not None:
            return Answers(tasks, replace(sample, propensity=arrived.share), seen, arrived)
        of_the_rest = asked_for_the_rest(round_, tasks, sample)
        if of_the_rest is not None:
            return Answers(tasks, of_the_rest, seen)
    return Answers(tasks, weighed(sample, _variables(tasks, draw)), seen)


def _variables(tasks: Sequence[Asked], draw: Draw) -> dict[str, NDArray[np.float64]]:
    """The auxiliary variables of every draw, answered or not; NaN where a task has none of that name."""
    of = {task.position: task.variables for task in tasks}
    names = {name for variables in of.values() for name in variables}
    return {name: np.array([of.get(int(at), {}).get(name, np.nan) for at in draw.positions]) for name in sorted(names)}


def _loss(task: Asked, problem: Problem) -> float:
    """The loss of the model's prediction; NaN without an answer."""
    return float("nan") if task.truth is None else loss(task.truth, task.prediction, problem)


def _estimate(round_: Round, answers: Answers, main: Planned | None, *, provisional: bool) -> Estimate:
    """The estimate of the main measure."""
    if main is None:
        return _usual(round_, answers, provisional=provisional)
    rows = rows_of(round_, answers.tasks, answers.sample.draw)
    main.measure.check(rows.classes)
    estimate = estimate_of(answers, rows, main.measure, main.quantity, round_.plan)
    notes = (*estimate.notes, *_left_out(round_, estimate), *unchecked(answers.tasks))
    return replace(estimate, provisional=provisional, notes=notes)


def _usual(round_: Round, answers: Answers, *, provisional: bool) -> Estimate:
    """The estimate of what is usual for the problem: by the truths that have come, or by the design."""
    alone = any(task.arrived for task in answers.tasks) and waits_alone(answers.tasks)
    estimate = _of_truths(round_, answers, provisional) if alone else _of_design(round_, answers)
    estimate = _told(round_, replace(estimate, quantity=round_.plan.usual_quantity))
    notes = (*estimate.notes, *unchecked(answers.tasks))
    if not provisional and answers.sample.response < LOW and round_.plan.quantity.share:
        notes = (*notes, *_at_worst(answers.sample, round_.plan.quantity))
    return replace(estimate, provisional=provisional, notes=notes)


def _of_truths(round_: Round, answers: Answers, provisional: bool) -> Estimate:
    """The estimate where truths are all that has come, and not all of them have; with what it takes for granted."""
    missing = awaits(answers.tasks, provisional=provisional)
    estimate = by_lags(round_, answers.sample, answers.arrived, missing)
    if estimate is None:
        estimate = _of_design(round_, answers)
        note = (
            f"{missing}, and too few have come before to learn how soon they do: this takes for granted that it does "
            "not depend on what the truth is"
        )
        estimate = replace(estimate, notes=(*estimate.notes, note))
    sided = one_sided(answers.tasks) if traits(round_.plan.problem).right_or_wrong else ()
    return replace(estimate, notes=(*estimate.notes, *sided))


def _of_design(round_: Round, answers: Answers) -> Estimate:
    """The estimate by the design, assisted by the proxy that the round's plan names where that is known."""
    estimator = plugins.make("estimator", answers.sample.draw.design)
    known = round_.plan.proxy is not None and Proxy.of_draw(answers.sample.draw) is not None
    if known:
        base = cast(LinearEstimator, estimator)
        estimate = assisted(base, answers.sample, round_.plan.level, named(round_))
    else:
        estimate = estimator.estimate(answers.sample, round_.plan.level)
    if round_.plan.problem == "judged":
        estimate = of_scores(estimator, answers.sample, estimate)
    if round_.plan.proxy is not None and not known:
        estimate = replace(estimate, notes=(*estimate.notes, UNASSISTED))
    return estimate


def _told(round_: Round, estimate: Estimate) -> Estimate:
    """The estimate with what it does not speak of."""
    notes = (*estimate.notes, *_left_out(round_, estimate))
    if round_.slicing is not None:
        notes = (*notes, *round_.slicing.notes)
    return replace(estimate, notes=notes)


def _at_worst(sample: Sample, quantity: Quantity) -> tuple[str, ...]:
    """How far the silent draws could lead at worst, for designs whose weights are known."""
    estimator = linear(sample)
    if estimator is None:
        return ()
    low, high = worst_case(estimator, sample)
    heard = f"only {percent(sample.response, 0)} of the draws have an answer, the others for reasons that nobody knows"
    worst, best = (quantity.text(bound) for bound in (low, high))
    span = f"{worst} if all of them were wrong and {best} if all were right"
    return (f"{heard}: the estimate would be {span}",)


def _left_out(round_: Round, estimate: Estimate) -> tuple[str, ...]:
    """What the estimate does not speak of, and where the accuracy over all inputs would lie at worst."""
    unscorable, unlogged = round_.unscorable or 0, losses.total(round_.losses, "unlogged")
    thinning = Thinning.of(round_.plan.thinning)
    missing = unscorable + unlogged * (1.0 if thinning is None else thinning.least)  # as many inputs stand for them
    if not missing:
        return ()
    named = []
    if unscorable:
        share = percent(unscorable / round_.received)
        named.append(f"{unscorable:,} of {round_.received:,} inputs cannot be scored ({share})")
    if unlogged:
        named.append(f"{unlogged:,} more were never logged or read")
    note = f"{' and '.join(named)}: this is of the others"
    if estimate.quantity.share and estimate.quantity == round_.plan.usual_quantity:
        known = estimate.frame_size / (estimate.frame_size + missing)
        low, high = estimate.low * known, estimate.high * known + 1 - known
        bounds = (round_.plan.quantity.text(bound) for bound in (low, high))
        note += f"; over all of them it lies between {' and '.join(bounds)}, whatever those were"
    return (note,)


def _nothing_came(work: Toolbox, round_: Round, answers: Answers) -> bool:
    why = "nobody could answer any of its tasks" if answers.settled else "no label came before the deadline"
    return _nothing_tells(work, round_, answers, why)


def _nothing_tells(work: Toolbox, round_: Round, answers: Answers, why: str, beside: Sequence[Measured] = ()) -> bool:
    problem = f"{why}; a late one will be estimated when it comes"
    asked, returned = len(answers.tasks), answers.returned
    close_without_estimate(work, round_, problem, asked=asked, returned=returned, further=beside)
    return True


def _main_is_not_told(work: Toolbox, round_: Round, answers: Answers, main: Planned, problem: InputError) -> bool:
    """The labels say nothing of the main measure, such as a recall of a class that none of them is of: what they say
    of the others is told all the same."""
    beside = further(round_, answers, lambda: _usual(round_, answers, provisional=False))
    known = in_words(beside)
    others = f". What they do tell: {known}" if known else ""
    return _nothing_tells(work, round_, answers, f"its labels do not tell its {main.key}: {problem}{others}", beside)


def _save(work: Toolbox, round_: Round, answers: Answers, estimate: Estimate, *, whole: Whole | None = None) -> None:
    """Keep it, with what its draws tell: nothing, where they do not make the estimate; and the further measures."""
    now = work.clock()
    by_draws = whole is None and not estimate.method.endswith("/lags")
    tally = tally_of(round_, answers) if by_draws else None
    beside: list[Measured] = []
    if round_.plan.measures:
        rows = None if whole is None else whole.rows
        beside = further(round_, answers, lambda: _usual(round_, answers, provisional=estimate.provisional), rows)
    found = None
    if by_draws and not estimate.provisional:
        with work.store.read() as connection:
            found = correction.correction_of(connection, round_, answers, estimate)
    parts = slices_of(round_, answers, estimate, whole)
    with work.write() as connection:
        revisions.add_estimate(
            connection,
            round_.id,
            correction.told(estimate, found),
            failures=len(failing(answers.sample, round_.plan)),
            labels_seen=answers.labels_seen,
            made_at=now,
            tally=tally,
            corrected=found,
            further=beside,
            slices=parts,
        )
        if not estimate.provisional:
            rounds.update(connection, round_.id, state=RoundState.ESTIMATED, problem=None)
