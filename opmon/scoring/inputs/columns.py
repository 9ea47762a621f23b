"""Arrow columns as numbers for a model; a value that is none sets its row aside, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import ModelError

DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
    "uint64": np.uint64,
    "uint32": np.uint32,
    "uint16": np.uint16,
    "uint8": np.uint8,
    "bool": np.bool_,
    "string": np.object_,
}
"""ONNX Runtime's names of the kinds of numbers that can be fed."""


@dataclass
class Rejections:
    """Which rows of a batch cannot be scored, and the first reason found for each."""

    count: int
    reasons: dict[int, str] = field(default_factory=dict)

    def add(self, bad: NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        for row in np.flatnonzero(bad).tolist():
            if row not in self.reasons:
                self.reasons[row] = reason(row)

    @property
    def good(self) -> NDArray[np.int64] | None:
        """The rows that are left; None where it is all of them."""
        if not self.reasons:
            return None
        keep = np.ones(self.count, dtype=bool)
        keep[list(self.reasons)] = False
        return np.flatnonzero(keep)


def decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def numbers(name: str, column: pa.Array, dtype: Any, missing: bool, rejected: Rejections) -> NDArray[Any]:
    """One number per row; what is returned for a rejected row means nothing. ``missing`` lets null through as NaN."""
    column = decoded(column)
    if dtype is np.object_:
        return _texts(name, column, rejected)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values = _parsed(name, column, rejected)
    else:
        values = _plain(name, column)
    if column.null_count:
        null = np.asarray(column.is_null())
        if missing and np.issubdtype(dtype, np.floating):
            values = np.where(null, np.nan, values)
        else:
            rejected.add(null, lambda row: f"column {name!r} is empty")
            values = np.where(null, 0, values)
    return fitted(name, values, dtype, missing, rejected)


def fitted(
    name: str,
    values: NDArray[Any],
    dtype: Any,
    missing: bool,
    rejected: Rejections,
    rows: NDArray[np.int64] | None = None,
) -> NDArray[Any]:
    """The values in the model's own dtype: finite, whole where it takes whole numbers, and within its range.

    ``values`` has one entry, or one row of entries, for each row of the batch, or for those in ``rows``.
    """
    at = np.arange(len(values)) if rows is None else rows
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype, copy=False)
    if values.dtype.kind in "iub" and np.dtype(dtype) in (np.float32, np.float64):
        return cast  # a whole number is always finite there
    if np.issubdtype(dtype, np.floating):
        if values.dtype.itemsize <= 2 and values.dtype.kind in "iub" and dtype is not np.float16:
            return cast
        if not missing and np.isfinite(_square_sum(cast)):
            return cast
        bad = np.isinf(cast) if missing else ~np.isfinite(cast)
    elif cast is values or np.array_equal(cast, values):
        return cast
    else:
        bad = cast != values
    wrong = bad.any(axis=tuple(range(1, bad.ndim)))
    if wrong.any():
        mask = np.zeros(rejected.count, dtype=bool)
        mask[at[wrong]] = True
        kind = np.dtype(dtype).name
        rejected.add(mask, lambda row: f"column {name!r} holds a number that is not finite or no {kind}")
    return cast


def _square_sum(values: NDArray[Any]) -> Any:
    """Finite only if all values are (and small enough): one quick pass, where looking at each value takes three."""
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.dot(flat, flat)


def _plain(name: str, column: pa.Array) -> NDArray[Any]:
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ModelError(f"column {name!r} is {kind}, and the model takes numbers there; leave it out of the inputs")
    if column.null_count:
        column = pc.fill_null(column, 0)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _parsed(name: str, column: pa.Array, rejected: Rejections) -> NDArray[np.float64]:
    """Text that should be numbers, such as a column that was text in one of the files."""
    try:
        return np.asarray(pc.fill_null(pc.cast(column, pa.float64()), 0).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        texts = column.to_pylist()
    values = np.zeros(len(texts))
    bad = np.zeros(len(texts), dtype=bool)
    for row, text in enumerate(texts):
        try:
            values[row] = 0 if text is None else float(text)
        except ValueError:
            bad[row] = True
    rejected.add(bad, lambda row: f"column {name!r} is not a number: {texts[row][:40]!r}")
    return values


def _texts(name: str, column: pa.Array, rejected: Rejections) -> NDArray[Any]:
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise ModelError(f"column {name!r} is {column.type}, and the model takes text there")
    rejected.add(np.asarray(column.is_null()), lambda row: f"column {name!r} is empty")
    return np.asarray(pc.fill_null(column.cast(pa.string()), "").to_numpy(zero_copy_only=False), dtype=object)
