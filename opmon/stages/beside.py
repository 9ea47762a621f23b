"""What the log says beside a round's frame: columns of its rows, input by input, and the losses they amount to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.errors import NotFoundError, SourceError
from opmon.problems import traits
from opmon.stages.frames import NAME
from opmon.stages.toolbox import Toolbox
from opmon.store.rounds import Round
from opmon.store.slices import slices_of
from opmon.truth.reading import column_of
from opmon.types import Floats


def frame_path(work: Toolbox, round_: Round) -> Path:
    """The round's frame, in the work folder, or from MLflow where another machine made it."""
    path = work.round_folder(round_) / NAME
    if not path.exists():
        if round_.run_id is None:
            raise NotFoundError(f"round {round_.number} of {round_.monitor} has no frame yet")
        path = work.registry.download(round_.run_id, NAME, path.parent)
    return Path(path)


def frame_column(path: Path, name: str) -> pa.Array:
    """One column of a frame."""
    with pq.ParquetFile(path) as file:
        return file.read(columns=[name])[name].combine_chunks()


def beside_frame(work: Toolbox, round_: Round, path: Path, column: str) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """A column of the log, read again: positions in the frame with the values of their rows, batch by batch."""
    with work.store.read() as connection:
        slices = slices_of(connection, round_.id)
    starts = np.cumsum([0, *(piece.rows for piece in slices)])
    place = starts[frame_column(path, "slice").to_numpy()] + frame_column(path, "row").to_numpy()
    at = np.full(starts[-1], -1)
    at[place] = np.arange(len(place))
    for batch in work.source.read(slices, [column]):
        first = starts[batch.slice_index] + batch.first_row
        positions = at[first : first + batch.rows.num_rows]
        mine = positions >= 0
        yield positions[mine], column_of(batch.rows, column).filter(pa.array(mine))


def losses_of(round_: Round, labels: pa.Array, predictions: pa.Array) -> Floats:
    """The loss of each prediction, NaN without a label."""
    holds = traits(round_.plan.problem)
    if holds.of_numbers:
        return np.asarray((labels.cast(pa.float64()).to_numpy(False) - predictions.to_numpy(False)) ** 2)
    labels = labels.cast(pa.string())
    if not holds.compares:
        coded = labels.dictionary_encode()
        lacks = pa.array([holds.loss(said, "") for said in coded.dictionary.to_pylist()], pa.float64())
        return np.asarray(lacks.take(coded.indices).to_numpy(False))
    if round_.classes and round_.plan.problem == "classification":
        labels = pc.if_else(pc.is_in(labels, pa.array(round_.classes, pa.string())), labels, None)
    return np.asarray(pc.cast(pc.not_equal(labels, predictions.cast(pa.string())), pa.float64()).to_numpy(False))


def fetch_table(work: Toolbox, round_: Round, inputs: pa.Table) -> pa.Table:
    """The rows of inputs of the frame, read again from the log, in the same order, which is that of the frame."""
    with work.store.read() as connection:
        slices = slices_of(connection, round_.id)
    wanted: dict[int, list[int]] = {}
    for index, row in zip(inputs["slice"].to_pylist(), inputs["row"].to_pylist(), strict=True):
        wanted.setdefault(index, []).append(row)
    table: pa.Table = work.source.fetch(slices, wanted)
    if table.num_rows != len(inputs):
        raise SourceError(
            f"{len(inputs)} inputs of round {round_.number} were drawn and the log gives {table.num_rows} back; "
            "were its files changed or removed? Put them back and run again."
        )
    return table
