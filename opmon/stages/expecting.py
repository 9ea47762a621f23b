"""What a round is expected to be before its labels come: told when it is scored, and kept as it was told.

It stands on rounds before whose labels have come by then, all or most of them. Labels that come later change what is
told of later rounds, and nothing that was told. It is a prediction, which no rule looks at.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.special import ndtri

from opmon import plugins
from opmon.abc import Point
from opmon.errors import InputError
from opmon.expected import Expectation, Miss, Past, Record, Seen, expect, from_scores
from opmon.problems import is_binary, traits
from opmon.quantities import Quantity
from opmon.queries.expected import told_of
from opmon.reports.timeline import expected_metrics
from opmon.stages.estimate import Answers, read_answers
from opmon.stages.frames import read_frame
from opmon.stages.measures import main_of, rows_of
from opmon.stages.timeline import model_of
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions, rounds
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.types import Floats, Json
from opmon.types.expected import Expected
from opmon.wording import counted

log = logging.getLogger(__name__)

ROUNDS, LABELS = 30, 10_000
"""The rounds before that are looked at, at most, and the labels of theirs: the newest count most."""
ENOUGH = 0.5
"""A round whose labels still come counts from this share of them on."""
FEW = 5
"""With fewer rounds it is said that they are few."""


@dataclass(frozen=True, eq=False)
class _Known:
    """A round before that has labels."""

    round: Round
    revision: Revision
    past: Past | None
    """Its answered draws; None where what is estimated is no mean of theirs."""
    bounds: tuple[float, float]


def expected_of(work: Toolbox, round_: Round, path: Path) -> dict[str, Json] | None:
    """What is told of a round that was scored, or why nothing is; None where nobody wants to know."""
    if not work.settings.estimate.before_labels:
        return None
    try:
        return _expected(work, round_, path).stored()
    except InputError as exc:
        log.info("round %d of %s is told nothing before its labels: %s", round_.number, work.name, exc)
        return {"why": str(exc)}


def tell_expected(work: Toolbox, round_: Round) -> None:
    """Tell the registry's timeline, under keys of its own; told twice, it is there once."""
    found = Expected.of(round_.expected)
    if found is None or round_.timeline_run_id is None:
        return
    at = round_.ends_at or round_.opened_at
    metrics = expected_metrics(found, round_.plan.quantity)
    points = [Point(key, value, round_.number, at) for key, value in metrics.items()]
    work.registry.record(round_.timeline_run_id, points, model=model_of(work, round_))


def _expected(work: Toolbox, round_: Round, path: Path) -> Expected:
    names: dict[str, int] = {}
    frame = _frame(path, names, traits(round_.plan.problem).one_class)
    if not len(frame):
        raise InputError("there is no input to tell anything of")
    quantity, level = round_.plan.quantity, round_.plan.level
    main = main_of(round_.plan)
    scores = round_.plan.problem == "classification" and main is None
    with work.store.read() as connection:
        known = _before(connection, round_, names)
        told = told_of(connection, round_.monitor, round_.model, quantity, before=round_.number)
    past = [each.past for each in known if each.past is not None]
    if past:
        losses = np.concatenate([each.losses for each in past])
        found = expect(
            past,
            [_miss(each) for each in known if _is_held_against_labels(each)],
            frame,
            round_.number,
            binary=is_binary(losses, round_.plan.problem if main is None else None),
            scores=scores,
            level=level,
            bounds=known[0].bounds,
        )
    elif known:
        raise InputError(f"the {quantity.name} is no mean over all inputs, and only such can be expected")
    elif not scores:
        raise InputError(
            "no round of this model version has a final estimate yet, and scores alone say nothing of its "
            f"{quantity.name}"
        )
    else:
        found = from_scores(frame, level)
    return _as_told(found, past, frame, Record.of(told, quantity), quantity, level, scores)


def _as_told(
    found: Expectation,
    past: Sequence[Past],
    frame: Seen,
    record: Record | None,
    quantity: Quantity,
    level: float,
    scores: bool,
) -> Expected:
    """With what a reader must know of it, and the way round that the quantity has."""
    value, low, high = found.value, found.low, found.high
    if quantity.share:
        value, low, high = 1 - value, 1 - high, 1 - low
    numbers, labels = tuple(each.number for each in past), sum(len(each.losses) for each in past)
    notes = [_basis(numbers, labels, frame, scores)]
    if 0 < len(numbers) < FEW:
        notes.append(f"only {counted(len(numbers), 'round')} before has labels, so the interval is wide")
        notes[-1] = notes[-1] if len(numbers) == 1 else notes[-1].replace(" has ", " have ")
    if record is not None:
        notes.append(f"so far {record.text(quantity)}")
        notes += [record.lately] if record.lately else []
    if found.widened > 1.05:
        by = f"{found.widened:.1f} times as wide"
        notes.append(f"its interval is {by}, because predictions before were further off than they should be")
    return Expected(value, low, high, level, found.sd, found.widened, numbers, labels, tuple(notes))


def _basis(numbers: Sequence[int], labels: int, frame: Seen, scores: bool) -> str:
    """What it stands on."""
    if not numbers:
        return (
            "from the model's own scores alone: no round of this version has a final estimate yet, so nothing says how "
            "far they can be trusted, and the interval is as wide as models may be off"
        )
    of = f"{counted(labels, 'label')} of " + (
        f"round {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} rounds, {numbers[0]} to {numbers[-1]}"
    )
    if not frame.variables:
        return f"from the {of}: no variable of the inputs themselves is there"
    if scores and "confidence" in frame.variables:
        return f"from the model's own scores, corrected by the {of}"
    return f"from {', '.join(sorted(frame.variables))}, as the {of} say"


def _frame(path: Path, names: dict[str, int], of_classes: bool) -> Seen:
    """All inputs of the round, with the numbers of the classes that are predicted."""
    frame = read_frame(path)
    variables = {name: frame.variables[name] for name in frame.variables}
    usable = {name: values for name, values in variables.items() if np.isfinite(values).any()}
    if not of_classes or not frame.size:
        return Seen(usable, np.full(frame.size, -1, dtype=np.int64))
    with pq.ParquetFile(path, read_dictionary=["prediction"]) as file:
        coded = file.read(columns=["prediction"])["prediction"].unify_dictionaries().combine_chunks()
    places = [names.setdefault(str(name), len(names)) for name in coded.dictionary.to_pylist()]
    return Seen(usable, np.array(places, dtype=np.int64)[coded.indices.to_numpy()])


def _before(connection: Connection, round_: Round, names: dict[str, int]) -> list[_Known]:
    """The rounds of the same version before this one whose labels tell the same quantity, oldest first."""
    newest = rounds.newest(connection, round_.monitor, ROUNDS, before=round_.number)
    mine = [each for each in newest if each.model == round_.model and each.draw is not None]
    final = revisions.latest_of(connection, [each.id for each in mine])
    found: list[_Known] = []
    labels = 0
    for each in mine:
        revision = final.get(each.id)
        if revision is None or revision.estimate.quantity != round_.plan.quantity:
            continue
        answers = read_answers(connection, each, payloads=False)
        if revision.estimate.provisional and not _tells_enough(answers):
            continue
        past, bounds = _past(each, answers, names)
        found.append(_Known(each, revision, past, bounds))
        labels += 0 if past is None else len(past.losses)
        if labels >= LABELS:
            break
    return found[::-1]


def _tells_enough(answers: Answers) -> bool:
    """Whether the labels of a round that waits for others stand for them: which truths come first is no chance."""
    return answers.sample.response >= ENOUGH and not any(task.arrived for task in answers.tasks)


def _past(round_: Round, answers: Answers, names: dict[str, int]) -> tuple[Past | None, tuple[float, float]]:
    """The answered draws of a round with their losses: what a share lacks to 1, or the values themselves."""
    sample = answers.sample
    answered = sample.answered
    losses, bounds = _losses(round_, answers)
    if losses is None or not answered.any():
        return None, bounds
    positions = sample.draw.positions[answered]
    tasks = {task.position: task for task in answers.tasks}
    mine = [tasks[int(position)] for position in positions]
    known = set.intersection(*(set(task.variables) for task in mine))
    variables = {name: np.array([task.variables[name] for task in mine], dtype=np.float64) for name in sorted(known)}
    finite = {name: values for name, values in variables.items() if np.isfinite(values).all()}
    said = np.array([names.setdefault(task.prediction, len(names)) for task in mine], dtype=np.int64)
    coefficients = plugins.make("estimator", sample.draw.design).coefficients(sample)
    weights = np.ones(len(mine)) if coefficients is None else coefficients[answered]
    keep = weights > 0
    if not keep.any():
        return None, bounds
    seen = Seen({name: values[keep] for name, values in finite.items()}, said[keep])
    return Past(round_.number, seen, losses[keep], weights[keep]), bounds


def _losses(round_: Round, answers: Answers) -> tuple[Floats | None, tuple[float, float]]:
    """One for each answered draw, and what no loss lies beyond; None of a measure that is no mean of single inputs."""
    main, share = main_of(round_.plan), round_.plan.quantity.share
    if main is None:
        return answers.sample.outcomes[answers.sample.answered], (0.0, 1.0 if share else np.inf)
    rows = rows_of(round_, answers.tasks, answers.sample.draw)
    ratio = None if main.measure.needs_scores else main.measure.ratio(rows.only(rows.answered))
    if ratio is None or not (ratio.is_mean and main.measure.tells_ratio):
        return None, (-np.inf, np.inf)
    if share:
        return 1 - ratio.numerator, (0.0, 1.0)
    return ratio.numerator, (ratio.lowest, ratio.highest)


def _is_held_against_labels(known: _Known) -> bool:
    return not known.revision.estimate.provisional and Expected.of(known.round.expected) is not None


def _miss(known: _Known) -> Miss:
    """How far off what was told of a round was."""
    told, estimate = known.round.expected or {}, known.revision.estimate
    noise = (estimate.half_width / float(ndtri((1 + estimate.level) / 2))) ** 2
    return Miss(known.round.number, told["value"] - estimate.value, told["sd"], noise)
