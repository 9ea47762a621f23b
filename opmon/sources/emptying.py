"""Emptying rows of a table: they stay where they are, without what they held."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def emptied(table: pa.Table, mask: NDArray[np.bool_], stays: Collection[str]) -> pa.Table:
    """The table with nothing in the rows that the mask says, but for the columns that stay.

    Rows are taken by their numbers, none for those that are to be empty: that works for every type, nested ones too.
    """
    numbers = pa.array(np.arange(table.num_rows), mask=mask)
    for place, column in enumerate(table.schema):
        if column.name not in stays:
            left = _taken(table[column.name].combine_chunks(), numbers)
            table = table.set_column(place, column.with_nullable(True), left)
    return table


def is_empty(rows: pa.Table, stays: Collection[str]) -> bool:
    """Whether rows hold nothing but what stays."""
    return all(_is_nothing(rows[name].to_pylist()) for name in rows.column_names if name not in stays)


def _taken(column: pa.Array, numbers: pa.Array) -> pa.Array:
    """The rows of these numbers; a list of fixed size is full of nothing, for Parquet keeps none that is missing."""
    kind = column.type
    if not pa.types.is_fixed_size_list(kind):
        return column.take(numbers)
    size = kind.list_size
    mask = np.repeat(numbers.is_null().to_numpy(zero_copy_only=False), size)
    return pa.FixedSizeListArray.from_arrays(
        _taken(column.flatten(), pa.array(np.arange(len(mask)), mask=mask)), type=kind
    )


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_nothing, value)))
