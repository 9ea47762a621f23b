"""The rows that a model's own process is given: columns of the log, or tensors that a reader makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.scoring.inputs.columns import DTYPES
from opmon.scoring.inputs.readers import ReaderPlan
from opmon.scoring.session import Tensor
from opmon.types import Array, Signature

SHAPE = b"shape"
"""The key that says, with a column of lists, of which shape each row is."""
_AT_ONCE = 1024
"""So many rows are made into tensors at a time: pictures are large."""
_KINDS = {np.dtype(dtype).name: kind for kind, dtype in DTYPES.items() if kind != "string"}


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows for the model; ``places`` says which of the batch they are, ``rejected`` why others are not in them."""

    rows: pa.RecordBatch
    places: NDArray[np.int64]
    rejected: Mapping[int, str]


def pieces(reading: ReaderPlan, signature: Signature | None, rows: pa.RecordBatch) -> Iterator[Piece]:
    """The tensors of some rows, as lists of numbers in columns that the model's signature names."""
    taken = _taken(signature)
    reader = reading.reader(taken)
    for start in range(0, rows.num_rows, _AT_ONCE):
        fed = reader.tensors(rows.slice(start, _AT_ONCE))
        rejected = {start + row: reason for row, reason in fed.rejected.items()}
        given = [_listed(item.name, fed.tensors[item.name]) for item in taken]
        columns, fields = [column for column, _ in given], [field for _, field in given]
        yield Piece(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)), start + fed.rows, rejected)


def _taken(signature: Signature | None) -> Sequence[Tensor]:
    """The tensors that the model takes, as its signature says."""
    if signature is None or not signature.tensors:
        raise ModelError(
            "pictures, tokens and what a function makes are tensors, and the model does not say which it takes: log it "
            "with a signature of arrays (mlflow.models.infer_signature of an array as it takes it)"
        )
    return [
        Tensor(name or "inputs", _KINDS.get(kind, kind), tuple(None if size < 0 else size for size in shape))
        for name, kind, shape in signature.tensors
    ]


def _listed(name: str, values: Array) -> tuple[pa.Array, pa.Field]:
    width = int(np.prod(values.shape[1:], dtype=np.int64))
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).reshape(-1)), width)
    return column, pa.field(name, column.type, metadata={SHAPE: ",".join(map(str, values.shape[1:])).encode()})
