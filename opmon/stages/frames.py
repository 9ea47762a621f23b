"""A round's frame on disk and in MLflow: ``frame.parquet``, one row per scorable input.

Its columns are ``id``, ``slice`` and ``row`` (the way back to the log), ``prediction``, one ``variable.<name>`` for
each auxiliary variable and, for samplers that look at a hidden layer, ``activations``: one byte per neuron that varies,
the level in which it lies.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.types import Frame

NAME = "frame.parquet"
_VARIABLE, _ACTIVATIONS = "variable.", "activations"
_ROW_GROUP = 1 << 16


@dataclass(frozen=True, eq=False)
class FrameFile:
    """The scored inputs with the way back to their rows in the production log."""

    slice_index: NDArray[np.int32]
    row: NDArray[np.int64]
    ids: pa.Array
    prediction: NDArray[Any]
    """The prediction that is judged: production's own where it was logged."""
    variables: dict[str, NDArray[np.float32]]
    activations: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.row)

    def frame(self) -> Frame:
        return Frame(self.variables, predictions=self.prediction, activations=self.activations, size=len(self))

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        columns: dict[str, Any] = {
            "id": self.ids,
            "slice": self.slice_index,
            "row": self.row,
            "prediction": pa.array(self.prediction),
        }
        columns |= {_VARIABLE + name: values for name, values in self.variables.items()}
        dictionaries = list(columns)
        if self.activations is not None:
            columns[_ACTIVATIONS] = _as_bytes(self.activations)
        partial = path.with_suffix(".partial")
        pq.write_table(
            pa.table(columns), partial, row_group_size=_ROW_GROUP, compression="zstd", use_dictionary=dictionaries
        )
        os.replace(partial, path)  # noqa: PTH105 - said as what it is: an atomic rename

    @classmethod
    def read(cls, path: Path, *, activations: bool = True) -> FrameFile:
        """The frame; its activations, where it has any, can be left on disk."""
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            table = file.read([name for name in names if name != _ACTIVATIONS])
            neurons = _read_activations(file) if activations and _ACTIVATIONS in names else None
        variables = {
            name.removeprefix(_VARIABLE): table[name].to_numpy() for name in names if name.startswith(_VARIABLE)
        }
        return cls(
            slice_index=table["slice"].to_numpy(),
            row=table["row"].to_numpy(),
            ids=table["id"].combine_chunks(),
            prediction=table["prediction"].to_numpy(zero_copy_only=False)
            if pa.types.is_floating(table["prediction"].type)
            else table["prediction"].to_pandas().to_numpy(dtype=object),
            variables=variables,
            activations=neurons,
        )


def _as_bytes(activations: NDArray[np.uint8]) -> pa.Array:
    """One value of so many bytes per input, without a copy."""
    data = pa.py_buffer(np.ascontiguousarray(activations))
    count, width = activations.shape
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, data])


def _read_activations(file: pq.ParquetFile) -> NDArray[np.uint8]:
    """Row group by row group into one array: whole columns would be in memory twice."""
    width = file.schema_arrow.field(_ACTIVATIONS).type.byte_width
    found = np.empty((file.metadata.num_rows, width), np.uint8)
    done = 0
    for number in range(file.num_row_groups):
        for chunk in file.read_row_group(number, columns=[_ACTIVATIONS])[_ACTIVATIONS].chunks:
            part = np.frombuffer(chunk.buffers()[1], np.uint8, len(chunk) * width, chunk.offset * width)
            found[done : done + len(chunk)] = part.reshape(-1, width)
            done += len(chunk)
    return found
