"""The drift inside of slices, and what is known of each predicted class: both are kept with the round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.jobs.slices import texts_of
from opmon.stages.estimate import Answers
from opmon.stages.frames import read_predicted
from opmon.stages.measures import rows_of
from opmon.stages.slices import estimating
from opmon.stages.slicing import coded
from opmon.stages.weights import linear
from opmon.store.rounds import Round
from opmon.types import Json
from opmon.types.slicing import MISSING, OTHER, Cut, Slicing

if TYPE_CHECKING:
    import pandas as pd

MOST_SLICES = 12
"""Inside of so many slices, the largest ones, columns are compared."""
MOST_CLASSES = 20
"""Of a model with more classes, those that are predicted most."""


def drift_by_slice(
    slicing: Slicing | None, reference: pd.DataFrame, current: pa.Table, max_columns: int, seed: int
) -> dict[str, Json]:
    """Of each slice by columns of the log, how many columns were compared inside of it and which drifted."""
    from opmon.reports.drift import drift_in_slices

    if slicing is None or not slicing.slices:
        return {}
    now = current.to_pandas()
    found = drift_in_slices(
        {name: (reference[before], now[after]) for name, before, after in _members(slicing, reference, current)},
        max_columns=max_columns,
        seed=seed,
    )
    return {name: {"compared": one.compared, "drifted": list(one.drifted)} for name, one in found.items()}


def _members(
    slicing: Slicing, reference: pd.DataFrame, current: pa.Table
) -> Iterator[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]]:
    """Of each slice that both sides tell of, which of their rows are in it; the largest slices first."""
    sides = (pa.Table.from_pandas(reference, preserve_index=False), current)
    levels: dict[str, list[NDArray[np.str_]]] = {}
    for one in slicing.divided:
        if one.of == "column" and all(one.name in side.column_names for side in sides):
            cut = Cut(one.name, edges=one.edges)
            levels[one.name] = [_levels(side, cut, one.levels) for side in sides]
    told = [each for each in slicing.slices if set(each.levels) <= set(levels) and not _is_rest(each.levels)]
    for each in sorted(told, key=lambda slice_: -slice_.size)[:MOST_SLICES]:
        before, after = (
            np.logical_and.reduce([levels[name][side] == level for name, level in each.levels.items()])
            for side in (0, 1)
        )
        yield each.name, before, after


def _is_rest(levels: Mapping[str, str]) -> bool:
    return bool(set(levels.values()) & {OTHER, MISSING})


def _levels(side: pa.Table, cut: Cut, levels: tuple[str, ...]) -> NDArray[np.str_]:
    batch = side.select([cut.name]).combine_chunks().to_batches()
    if not batch:
        return np.zeros(0, dtype=np.str_)
    codes = coded(texts_of(batch[0], cut), levels)
    return np.asarray(codes.dictionary_decode().to_pylist(), dtype=np.str_)


def predicted_shares(round_: Round, path: Path) -> dict[str, Json]:
    """The share of the round's inputs that each class is predicted for; of a model with classes."""
    if round_.plan.problem != "classification":
        return {}
    counts = read_predicted(path)
    return {name: count / counts.total() for name, count in counts.most_common(MOST_CLASSES)}


def estimates_by_class(round_: Round, answers: Answers) -> dict[str, Json]:
    """The main measure on the inputs of each predicted class: value, bounds, and how many answers it stands on."""
    classes = (round_.drift or {}).get("classes", {})
    if not classes:
        return {}
    sample = answers.sample
    rows = rows_of(round_, answers.tasks, sample.draw) if round_.plan.measures else None
    (how, _), _ = estimating(round_, linear(sample), sample, rows)
    if how is None:
        return {}
    said = {task.position: task.prediction for task in answers.tasks}
    of_draws = np.array([said.get(int(position), "") for position in sample.draw.positions])
    found: dict[str, Json] = {}
    for name in classes:
        members = of_draws == name
        answered = int((members & sample.answered).sum())
        try:
            one = how(members, round_.plan.level) if answered else None
        except InputError:  # such as a recall of a class that these inputs are never of
            continue
        if one is not None and np.isfinite([one.low, one.high]).all():
            found[name] = [one.value, one.low, one.high, answered]
    return found
