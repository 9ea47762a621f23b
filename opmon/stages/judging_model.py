"""A registered model as the judge of another: what it answers to inputs of a round, by opmon's own ways of scoring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.problems import traits
from opmon.stages.beside import fetch_table, losses_of
from opmon.stages.frames import read_inputs
from opmon.stages.guesses import Said
from opmon.stages.models import way_of
from opmon.stages.toolbox import Toolbox
from opmon.store.rounds import Round
from opmon.types import Array, Batch, Floats
from opmon.values import canonical_classes

ROWS = 1 << 16
"""So many inputs are read again from the log at a time."""
UNSURE = "confidence"
"""The variable that says how unsure a classifier is of its answer."""


def wrong_by_model(
    work: Toolbox, round_: Round, path: Path, positions: NDArray[np.int64], address: str, said: pa.ChunkedArray
) -> Said:
    """How likely the predictions ``said`` at ``positions`` are wrong by the model at ``address``: where it agrees, what
    its own confidence lacks to 1; elsewhere 1. Of a regression, how far they are apart, squared. And its answers."""
    wrong: Floats = np.full(len(positions), np.nan)
    held: NDArray[np.object_] = np.full(len(positions), None)
    judged = said.combine_chunks()
    for places, answers, unsure in answers_of_model(work, round_, path, positions, address):
        there = losses_of(round_, pa.array(answers), judged.take(pa.array(places)))
        wrong[places] = there if unsure is None else np.where(there > 0, there, np.clip(unsure, 0, 1))
        held[places] = answers
    return Said(wrong, pa.array(held.tolist()))


def answers_of_model(
    work: Toolbox, round_: Round, path: Path, positions: NDArray[np.int64], address: str
) -> Iterator[tuple[NDArray[np.int64], Array, Floats | None]]:
    """Piece by piece: places among ``positions``, which ascend, what the model answers there, and how unsure it is."""
    model = work.registry.resolve(address)
    if model.uri == round_.model_uri:
        raise InputError(f"the judge {address} is the version that it would judge; name another model in 'judge'")
    if model.uri not in work.rivals:
        work.rivals[model.uri] = way_of(work.settings, work.registry, model, work.folder, plain=True).open()
    classifies = traits(round_.plan.problem).one_class
    for start in range(0, len(positions), ROWS):
        rows = fetch_table(work, round_, read_inputs(path, positions[start : start + ROWS], ["slice", "row"]))
        for part in work.rivals[model.uri].score(_batches(rows)):
            answers = canonical_classes(part.predictions) if classifies else part.predictions
            unsure = part.variables.get(UNSURE) if classifies else None
            yield start + part.rows, answers, None if unsure is None else unsure.astype(np.float64)


def _batches(rows: pa.Table) -> Sequence[Batch]:
    batches, first = [], 0
    for batch in rows.combine_chunks().to_batches():
        batches.append(Batch(0, first, batch))
        first += batch.num_rows
    return batches
