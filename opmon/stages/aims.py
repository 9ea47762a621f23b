"""What the sampler of a round aims at: its main measure, by what is foreseen of every input."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Measure
from opmon.adjudication import Asked
from opmon.measures.log_loss import LogLoss
from opmon.problems import traits
from opmon.samplers.foresight import Seen, foresee, foresee_numbers, foresee_scores
from opmon.stages.frames import CHANCE, read_chances, read_frame
from opmon.stages.measures import main_of, measures_of, set_rows
from opmon.stages.toolbox import Toolbox, sampler_of
from opmon.store import queue, rounds
from opmon.store.engine import Connection
from opmon.store.plans import RoundPlan
from opmon.store.rounds import Round
from opmon.types import Frame, Numbers, Sample
from opmon.types.prospect import Foreseen

log = logging.getLogger(__name__)

ROUNDS = 20
"""Rounds before, of the same version, whose labels say how far chances can be trusted."""
MOST_CLASSES = 64
"""Of a model of more classes the chances of drawn inputs are not kept: only the labels of a round itself then count."""


def aim_of(plan: RoundPlan) -> Measure | None:
    """The measure that a round's sampler aims at; None where it cannot aim, or where the usual one is the main one."""
    main = main_of(plan) if sampler_of(plan).aims else None
    return None if main is None else main.measure


def aim_of_classes(plan: RoundPlan) -> Measure | None:
    """The same, where chances of classes have to be known of every input."""
    return aim_of(plan) if traits(plan.problem).of_classes else None


def chances_of(plan: RoundPlan) -> Measure | None:
    """The measure of whose classes the frame keeps the chances; None where nobody looks at them. A proxy for a measure
    of scores wants those of all classes."""
    scores = plan.problem == "classification" and any(each.measure.needs_scores for each in measures_of(plan))
    return LogLoss() if scores and plan.proxy is not None else aim_of_classes(plan)


def aimed(work: Toolbox, round_: Round, path: Path, frame: Frame, sample: Sample | None) -> Frame:
    """The frame with what is foreseen of its inputs, as far as something is; ``sample`` is what was drawn so far."""
    aim = aim_of(round_.plan)
    if aim is None or not frame.size:
        return frame
    foreseen = _foreseen(work, round_, path, frame, sample, aim)
    if foreseen is None and (sample is not None or traits(round_.plan.problem).of_classes):
        log.info("round %d of %s is drawn as for its usual measure: nothing is foreseen of its main one", round_.number,
                 work.name)  # fmt: skip
    return replace(frame, foreseen=foreseen)


def _foreseen(
    work: Toolbox, round_: Round, path: Path, frame: Frame, sample: Sample | None, aim: Measure
) -> Foreseen | None:
    problem, classes = round_.plan.problem, tuple(round_.classes or ())
    if problem == "judged":
        return None if sample is None else foresee_scores(aim, frame, sample)
    known = frame if frame.predictions is not None else read_frame(path, predictions=True)
    if problem == "regression":
        return None if sample is None else foresee_numbers(aim, known, sample)
    if not classes or known.predictions is None:
        return None
    chances = read_chances(path)
    wanted = {name: chances[name] for name in aim.chances(classes) if name in chances}
    if len(wanted) < len(aim.chances(classes)):
        wanted = {}
    with work.store.read() as connection:
        seen = _seen(connection, round_, wanted, classes)
    if problem == "multilabel":
        different, place = np.unique(known.predictions.astype(np.str_), return_inverse=True)
        known = replace(known, predictions=set_rows(different.tolist(), classes)[place.ravel()])
    return foresee(aim, known, wanted, classes, seen, sample, problem)


def chances_of_drawn(
    round_: Round, positions: NDArray[np.int64], inputs: pa.Table, known: Mapping[int, Numbers]
) -> Mapping[int, Numbers]:
    """The chances of drawn inputs in the order of the round's classes, NaN for those that are not wanted; what is
    ``known`` of all classes stands before them. They stay with the tasks: later rounds learn from them."""
    classes = list(round_.classes or ())
    if aim_of_classes(round_.plan) is None or not classes or len(classes) > MOST_CLASSES:
        return known
    own = np.full((len(positions), len(classes)), np.nan, np.float32)
    for place, name in enumerate(classes):
        if CHANCE + name in inputs.column_names:
            own[:, place] = inputs[CHANCE + name].to_numpy()
    return dict(zip(positions.tolist(), own, strict=True)) | dict(known)


def _seen(
    connection: Connection, round_: Round, wanted: Mapping[str, Numbers], classes: tuple[str, ...]
) -> Seen | None:
    """The labelled inputs of this round and of those before, with the chances that the model gave them."""
    truth: list[str] = []
    said: list[str] = []
    chances: dict[str, list[float]] = {name: [] for name in wanted}
    for task, own in _answers(connection, round_, wanted, classes):
        truth.append(str(task.truth))
        said.append(task.prediction)
        for name in wanted:
            chances[name].append(own[name])
    if not truth:
        return None
    told = {name: np.array(values) for name, values in chances.items()}
    if round_.plan.problem == "multilabel":
        return Seen(set_rows(truth, classes), set_rows(said, classes), told)
    return Seen(np.array(truth), np.array(said), told)


def _answers(
    connection: Connection, round_: Round, wanted: Mapping[str, Numbers], classes: tuple[str, ...]
) -> Iterator[tuple[Asked, dict[str, float]]]:
    for task in queue.answers(connection, round_.id):
        if task.truth is not None:
            yield task, {name: float(values[task.position]) for name, values in wanted.items()}
    for before in rounds.newest(connection, round_.monitor, ROUNDS + 1):
        if before.number >= round_.number or before.model != round_.model:
            continue
        if tuple(before.classes or ()) != classes or before.plan.problem != round_.plan.problem:
            continue
        for task in queue.answers(connection, before.id):
            if task.truth is not None and task.scores is not None and len(task.scores) == len(classes):
                yield task, {name: float(task.scores[classes.index(name)]) for name in wanted}
