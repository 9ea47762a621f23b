"""A column of lists, nested or not, as one tensor; a row of another length is set aside."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.scoring.inputs.columns import Missing, Rejections, can_fill, decoded, fitted
from opmon.types import Array

Shape = tuple[int | None, ...]


def is_listed(kind: pa.DataType) -> bool:
    """Whether a type is a list of numbers, or a list of such lists."""
    while _is_list(kind):
        kind = kind.value_type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            return True
    return False


def settled_shape(column: pa.Array, shape: Shape) -> tuple[int, ...]:
    """``shape`` without unknowns: they are taken from the first row that has a list."""
    if all(size is not None for size in shape):
        return tuple(size for size in shape if size is not None)
    first = next((row for row in (column[i].as_py() for i in range(len(column))) if row), None)
    sizes: list[int] = []
    while isinstance(first, list):
        sizes.append(len(first))
        first = first[0] if first else None
    if len(sizes) == len(shape):
        return tuple(found if size is None else size for size, found in zip(shape, sizes, strict=True))
    known = math.prod(size for size in shape if size is not None)
    if shape.count(None) == 1 and sizes and math.prod(sizes) % known == 0:
        return tuple(math.prod(sizes) // known if size is None else size for size in shape)
    raise ModelError(
        f"the model takes a tensor [{', '.join('?' if size is None else str(size) for size in shape)}] for each input, "
        f"and lists of {' × '.join(map(str, sizes)) or 'nothing'} do not say its shape; export it with fixed sizes"
    )


def tensor(
    name: str,
    column: pa.Array,
    shape: tuple[int, ...],
    dtype: type[np.generic],
    missing: Missing,
    rejected: Rejections,
    hint: str = "",
) -> tuple[Array, NDArray[np.int64] | None]:
    """The rows of the right length, and which they are (None: all of them); one copy at the most.

    ``hint`` ends the reason of the others.
    """
    column = decoded(column)
    if not is_listed(column.type):
        raise ModelError(f"column {name!r} is {column.type}; a tensor is read from a column of lists of numbers")
    size = math.prod(shape)
    wrong = _wrong(name, column, shape, rejected, hint)
    rows = None
    if wrong is not None:
        rows = np.flatnonzero(~wrong)
        column = column.take(pa.array(rows))
    flat = column
    while _is_list(flat.type):
        flat = flat.flatten()
    values, gaps = _values(flat, len(column), size)
    cast, gaps = fitted(name, values, gaps, dtype, missing, rejected, rows)
    at = np.arange(len(column)) if rows is None else rows
    if gaps is not None:
        _set_aside(name, gaps, at, dtype, missing, rejected)
    if gaps is not None or wrong is not None:
        empty = np.zeros(rejected.count, dtype=bool) if wrong is None else wrong.copy()
        empty[at] = False if gaps is None else gaps.all(axis=1)
        rejected.lacks(name, empty if empty.any() else None)
    return cast.reshape(-1, *shape), rows


def _wrong(
    name: str, column: pa.Array, shape: tuple[int, ...], rejected: Rejections, hint: str
) -> NDArray[np.bool_] | None:
    """Refuse the rows that are not of the ``shape``: which they are, None for none."""
    size, kind = math.prod(shape), column.type
    flat = pa.types.is_fixed_size_list(kind) and not _is_list(kind.value_type)
    if flat and kind.list_size == size and not column.null_count:
        return None  # its type says so
    sizes, ragged = _sizes(column, shape)
    wrong: NDArray[np.bool_] = (sizes != size) | ragged
    if not wrong.any():
        return None
    rejected.add(np.asarray(column.is_null()), lambda row: f"column {name!r} is empty")
    rejected.add(
        wrong,
        lambda row: f"column {name!r} has {sizes[row]} values, not {_shown(shape)}, or rows of unlike length{hint}",
    )
    return wrong


def _values(flat: pa.Array, count: int, size: int) -> tuple[Array, NDArray[np.bool_] | None]:
    """One row of values for each list, and where one is null."""
    gaps = None
    if pa.types.is_boolean(flat.type):
        flat = flat.cast(pa.int8())
    if flat.null_count:
        gaps = np.asarray(flat.is_null()).reshape(count, size)
        flat = pc.fill_null(flat, 0)
    return flat.to_numpy(zero_copy_only=False).reshape(count, size), gaps


def _set_aside(
    name: str,
    gaps: NDArray[np.bool_],
    at: NDArray[np.int64],
    dtype: type[np.generic],
    missing: Missing,
    rejected: Rejections,
) -> None:
    """Refuse the rows with a gap in their list, where the model can be given nothing in its place."""
    if can_fill(dtype, missing):
        return
    mask = np.zeros(rejected.count, dtype=bool)
    mask[at[gaps.any(axis=1)]] = True
    rejected.add(mask, lambda row: f"column {name!r} has an empty value in its list")


def _sizes(column: pa.Array, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The number of values in each row, and whether its inner lists have unlike lengths."""
    levels = []
    while _is_list(column.type):
        levels.append(np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64))
        column = column.flatten()
    total = levels[-1]
    ragged = np.zeros(len(levels[0]), dtype=bool)
    for depth in range(len(levels) - 1, 0, -1):
        outer, inner = levels[depth - 1], levels[depth]
        stop = np.cumsum(outer)
        if len(levels) == len(shape):
            expected = np.full(len(inner), shape[depth])
        else:
            first = inner[np.minimum(stop - outer, max(len(inner) - 1, 0))] if len(inner) else np.zeros(len(outer), int)
            expected = np.repeat(first, outer)
        odd = inner != expected
        for above in range(depth, 0, -1):
            odd = _summed(odd.astype(np.int64), levels[above - 1]) > 0
        ragged |= odd
        total = _summed(total, outer)
    return total, ragged


def _summed(values: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of each run of ``lengths`` values."""
    sums = np.concatenate([[0], np.cumsum(values)])
    stop = np.cumsum(lengths)
    result: NDArray[np.int64] = sums[stop] - sums[stop - lengths]
    return result


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _shown(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))
