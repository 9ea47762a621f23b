"""A round's frame on disk and in MLflow: ``frame.parquet``, one row per scorable input.

Its columns are ``id``, ``slice`` and ``row`` (the way back to the log), ``prediction``, one ``variable.<name>`` for
each auxiliary variable, one ``slice.<name>`` for each column that divides the inputs, one ``chance.<class>`` for each
class that the sampler aims by and, for samplers that look at a hidden layer, ``activations``: one byte per neuron that
varies, the level in which it lies. It is written part by part, and read column by column or row by row: it is never in
memory as a whole.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.types import Array, Columns, Frame

NAME = "frame.parquet"
VARIABLE, SLICE, CHANCE, ACTIVATIONS = "variable.", "slice.", "chance.", "activations"
EMPTY = pa.schema([("id", pa.string()), ("slice", pa.int32()), ("row", pa.int64()), ("prediction", pa.string())])
"""Of a frame in which there is nothing."""
_ROW_GROUP = 1 << 16


def write_frame(path: Path, tables: Iterable[pa.Table]) -> int:
    """Write the tables one after the other, whole or not at all; gives how many rows they have."""
    partial, rows = path.with_suffix(".partial"), 0
    with _writer(partial) as write:
        for table in tables:
            write(table)
            rows += table.num_rows
    os.replace(partial, path)  # noqa: PTH105 - said as what it is: an atomic rename
    return rows


@contextmanager
def _writer(path: Path) -> Iterator[pq.ParquetWriter]:
    made: list[pq.ParquetWriter] = []

    def write(table: pa.Table) -> None:
        if not made:
            words = [name for name in table.schema.names if name != ACTIVATIONS]
            made.append(pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=words))
        made[0].write_table(table, row_group_size=_ROW_GROUP)

    try:
        yield write
        if not made:
            write(EMPTY.empty_table())
    finally:
        for writer in made:
            writer.close()


def read_frame(path: Path, *, activations: bool = False, predictions: bool = False) -> Frame:
    """What a sampler draws from; a variable is read when it is asked for, the predictions and the levels of the
    layer's neurons now, where they are wanted and there."""
    with pq.ParquetFile(path) as file:
        names, rows = file.schema_arrow.names, file.metadata.num_rows
    variables = [name.removeprefix(VARIABLE) for name in names if name.startswith(VARIABLE)]
    return Frame(
        Columns(variables, lambda name: _column(path, VARIABLE + name).to_numpy()),
        predictions=_predictions(path) if predictions else None,
        activations=_levels(path) if activations and ACTIVATIONS in names else None,
        size=rows,
    )


def read_predicted(path: Path) -> Counter[str]:
    """How many inputs are predicted as each class."""
    found: Counter[str] = Counter()
    with pq.ParquetFile(path, read_dictionary=["prediction"]) as file:
        for batch in file.iter_batches(_ROW_GROUP, columns=["prediction"]):
            for each in pc.value_counts(batch.column("prediction")).to_pylist():
                found[str(each["values"])] += int(each["counts"])
    return found


def read_chances(path: Path) -> Columns:
    """How likely the model holds some classes to be the truth, by class; each is read when it is asked for."""
    with pq.ParquetFile(path) as file:
        names = [name.removeprefix(CHANCE) for name in file.schema_arrow.names if name.startswith(CHANCE)]
    return Columns(names, lambda name: _column(path, CHANCE + name).to_numpy())


def read_inputs(path: Path, positions: NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.Table:
    """Single inputs, by their positions in ascending order, all columns but the activations, or those that are named;
    one row group at a time."""
    tables, first = [], 0
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        names = [name for name in schema.names if name != ACTIVATIONS] if columns is None else list(columns)
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            low, high = np.searchsorted(positions, [first, first + rows])
            if low < high:
                wanted = pa.array(positions[low:high] - first)
                tables.append(file.read_row_group(number, columns=names).take(wanted))
            first += rows
    if not tables:
        return pa.schema([schema.field(name) for name in names]).empty_table()
    return pa.concat_tables(tables).combine_chunks()


def _predictions(path: Path) -> Array:
    """The predictions that are judged: production's own where they were logged."""
    judged = _column(path, "prediction")
    if pa.types.is_floating(judged.type):
        return judged.to_numpy()  # type: ignore[no-any-return]
    return judged.to_pandas().to_numpy(dtype=object)  # type: ignore[no-any-return]


def _levels(path: Path) -> NDArray[np.uint8]:
    """Row group by row group into one array: as a column they would be in memory twice."""
    with pq.ParquetFile(path) as file:
        width = file.schema_arrow.field(ACTIVATIONS).type.byte_width
        levels = np.empty((file.metadata.num_rows, width), np.uint8)
        done = 0
        for number in range(file.num_row_groups):
            for chunk in file.read_row_group(number, columns=[ACTIVATIONS])[ACTIVATIONS].chunks:
                part = np.frombuffer(chunk.buffers()[1], np.uint8, len(chunk) * width, chunk.offset * width)
                levels[done : done + len(chunk)] = part.reshape(-1, width)
                done += len(chunk)
    return levels


def _column(path: Path, name: str) -> pa.ChunkedArray:
    with pq.ParquetFile(path) as file:
        return file.read(columns=[name])[name]


def levels_as_bytes(levels: NDArray[np.uint8]) -> pa.Array:
    """One value of so many bytes per input, without a copy."""
    data = pa.py_buffer(np.ascontiguousarray(levels))
    count, width = levels.shape
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, data])
