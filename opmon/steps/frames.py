"""A round's frame on disk and in MLflow: ``frame.parquet``, one row per scorable input."""

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
_VARIABLE = "variable."


@dataclass(frozen=True, eq=False)
class FrameFile:
    """The scored inputs with the way back to their rows in the production log."""

    slice_index: NDArray[np.int32]
    row: NDArray[np.int64]
    ids: pa.Array
    prediction: NDArray[Any]
    """The prediction that is judged: production's own where it was logged."""
    variables: dict[str, NDArray[np.float32]]

    def __len__(self) -> int:
        return len(self.row)

    def frame(self) -> Frame:
        return Frame(self.variables, predictions=self.prediction, size=len(self))

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        columns: dict[str, Any] = {
            "id": self.ids,
            "slice": self.slice_index,
            "row": self.row,
            "prediction": pa.array(self.prediction),
        }
        columns |= {_VARIABLE + name: values for name, values in self.variables.items()}
        partial = path.with_suffix(".partial")
        pq.write_table(pa.table(columns), partial, compression="zstd")
        os.replace(partial, path)  # noqa: PTH105 - said as what it is: an atomic rename

    @classmethod
    def read(cls, path: Path) -> FrameFile:
        table = pq.read_table(path)
        variables = {
            name.removeprefix(_VARIABLE): table[name].to_numpy()
            for name in table.column_names
            if name.startswith(_VARIABLE)
        }
        return cls(
            slice_index=table["slice"].to_numpy(),
            row=table["row"].to_numpy(),
            ids=table["id"].combine_chunks(),
            prediction=table["prediction"].to_numpy(zero_copy_only=False)
            if pa.types.is_floating(table["prediction"].type)
            else table["prediction"].to_pandas().to_numpy(dtype=object),
            variables=variables,
        )
