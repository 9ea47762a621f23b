"""The inputs' ids as text, and their hashes, by which duplicates are found and truths are joined.

A log and a table of truths may hold the same ids in different types: a whole number is written without fraction and
exponent, whatever type it comes in.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.scoring.inputs.columns import decoded

LONGEST_ID = 500
_BITS = {32: 24, 64: 53}
"""How many bits of a whole number a floating number of so many bits keeps."""
_NO_FRACTION = r"^(-?\d+)\.0+$|^-?(0)E-\d+$"


def ids_of(values: pa.Array, name: str | None) -> pa.Array:
    """The ids as text; an error where one of them can be no id."""
    values = _plain(values)
    try:
        ids = texts_of_ids(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
        raise _no_id(values, name, str(exc)) from exc
    if pa.types.is_floating(values.type):
        lost = values.filter(pc.and_(pc.is_null(ids), pc.fill_null(pc.is_finite(values), False)))
        if len(lost):
            why = f"it holds {lost[0].as_py():.17g}, and a number so large does not keep every digit in this type"
            raise _no_id(values, name, f"{why} (for the source sql say types: {{{name}: string}})")
    if ids.null_count:
        raise SourceError(
            f"{ids.null_count} of {len(ids)} inputs have no {name!r}; an id column must be filled in every row, "
            "or left out of 'columns' so that the place in the log is the id"
        )
    bad = pc.invert(may_be_ids(ids))
    if pc.any(bad).as_py():
        example = ids.filter(bad)[0].as_py()
        raise SourceError(
            f"column {name!r} holds the id {example[:40]!r} of {len(example)} characters; an id has at most "
            f"{LONGEST_ID} and no NUL character. Name another column, or leave id out of 'columns'."
        )
    return ids


def texts_of_ids(values: pa.Array) -> pa.Array:
    """The ids as text; null where there is none, and where a floating number does not keep all digits of one."""
    values = _plain(values)
    if pa.types.is_floating(values.type):
        return _of_floats(values)
    if pa.types.is_decimal(values.type):
        whole = values.cast(pa.decimal256(76, 0)) if values.type.scale < 0 else values
        return pc.replace_substring_regex(pc.cast(whole, pa.string()), _NO_FRACTION, r"\1\2")
    return pc.cast(values, pa.string())


def may_be_ids(texts: pa.Array) -> pa.Array:
    """Whether each text can be an id; null where there is none."""
    return pc.and_(pc.less_equal(pc.utf8_length(texts), LONGEST_ID), pc.invert(pc.match_substring(texts, "\0")))


def hashes_of(ids: pa.Array) -> NDArray[np.uint64]:
    """A hash of each id, the same in every process and release: rounds remember them."""
    import pandas as pd

    return np.asarray(pd.util.hash_array(ids.to_pandas().to_numpy(dtype=object), categorize=False))


def _plain(values: pa.Array) -> pa.Array:
    return values if pa.types.is_string(values.type) else decoded(values)


def _of_floats(values: pa.Array) -> pa.Array:
    numbers = pc.cast(values, pa.float64())
    finite = pc.is_finite(numbers)
    whole = pc.and_(finite, pc.equal(numbers, pc.floor(numbers)))
    exact = pc.and_(whole, pc.less(pc.abs(numbers), 2.0 ** _BITS[values.type.bit_width]))
    fractions = pc.cast(pc.if_else(pc.and_(finite, pc.invert(whole)), values, None), pa.string())
    return pc.coalesce(pc.cast(pc.cast(pc.if_else(exact, numbers, None), pa.int64()), pa.string()), fractions)


def _no_id(values: pa.Array, name: str | None, why: str) -> SourceError:
    return SourceError(
        f"column {name!r} ({values.type}) cannot be the id: {why}; use a column of text or whole numbers, or leave id "
        f"out of 'columns' so that the place in the log is the id"
    )
