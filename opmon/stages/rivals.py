"""What another model version answers to the inputs that were drawn for this one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from opmon.adjudication import Asked
from opmon.jobs.model import Answering
from opmon.problems import traits
from opmon.quantities import Problem, loss
from opmon.stages.beside import fetch_table, frame_path
from opmon.stages.captured import captured
from opmon.stages.frames import read_inputs
from opmon.stages.measures import measures_of
from opmon.stages.models import way_of
from opmon.stages.scores import order_of
from opmon.stages.toolbox import Toolbox
from opmon.store.rounds import Round
from opmon.types import Batch, ModelVersion, Numbers, Sample
from opmon.values import canonical_classes


def rival_outcomes(
    work: Toolbox, round_: Round, tasks: Sequence[Asked], sample: Sample, address: str
) -> NDArray[np.float64] | None:
    """The outcome of every draw under the version at ``address``; None where that is the round's own version."""
    model = work.registry.resolve(address)
    if model.uri == round_.model_uri:
        return None
    said = predictions_of(work, round_, model, [task.position for task in tasks])
    return outcomes_of(tasks, sample, said, round_.plan.problem)


def outcomes_of(tasks: Sequence[Asked], sample: Sample, said: dict[int, str], problem: Problem) -> NDArray[np.float64]:
    """One outcome per draw from predictions by position; NaN where there is no answer or no prediction."""
    losses: dict[int, float] = {}
    for task in tasks:
        if task.truth is not None and task.position in said:
            losses[task.position] = loss(task.truth, said[task.position], problem)
    return np.array([losses.get(int(position), np.nan) for position in sample.draw.positions])


def predictions_of(work: Toolbox, round_: Round, model: ModelVersion, positions: Sequence[int]) -> dict[int, str]:
    """What the version says of drawn inputs of a round."""
    return answers_of(work, round_, model, positions)[0]


def answers_of(
    work: Toolbox, round_: Round, model: ModelVersion, positions: Sequence[int]
) -> tuple[dict[int, str], dict[int, Numbers]]:
    """The same, with its scores in the order of the round's classes, where it has them."""
    if model.uri not in work.rivals:
        work.rivals[model.uri] = way_of(work.settings, work.registry, model, work.folder, plain=True).open()
    chosen = np.unique(np.asarray(positions, dtype=np.int64))
    table = captured(work, round_, chosen)
    if table is None:  # drawn by a release that captured nothing: the log may still have it
        inputs = read_inputs(frame_path(work, round_), chosen, ["slice", "row"])
        table = fetch_table(work, round_, inputs)
    scorer = work.rivals[model.uri]
    if any(each.measure.needs_scores for each in measures_of(round_.plan)):
        scorer = scorer.keeping_scores()
    return _answers(scorer, chosen, table, round_)


def _answers(
    scorer: Answering, ordered: NDArray[np.int64], table: object, round_: Round
) -> tuple[dict[int, str], dict[int, Numbers]]:
    batches = []
    start = 0
    for rows in table.combine_chunks().to_batches():  # type: ignore[attr-defined]
        batches.append(Batch(0, start, rows))
        start += rows.num_rows
    said: dict[int, str] = {}
    scores: dict[int, Numbers] = {}
    for part in scorer.score(batches):
        names = canonical_classes(part.predictions) if traits(round_.plan.problem).one_class else part.predictions
        said |= {int(ordered[row]): str(name) for row, name in zip(part.rows, names.astype(str), strict=True)}
        order = order_of(part.classes, round_.classes)
        if part.scores is not None and order is not None:
            scores |= {int(ordered[row]): own for row, own in zip(part.rows, part.scores[:, order], strict=True)}
    return said, scores
