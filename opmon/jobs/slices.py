"""The values of columns that divide the inputs into slices, as text: nothing where there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from opmon.scoring.inputs.columns import decoded
from opmon.types import Array
from opmon.types.slicing import Cut, bands

LONGEST = 80
"""So much of a value tells it from others."""
_TEXT = pa.dictionary(pa.int32(), pa.string())


def texts_of(rows: pa.RecordBatch, cut: Cut) -> pa.DictionaryArray:
    """One text for each row: the value, or the band that it lies in. Of a column that is not there, nothing.

    Only different values are looked at one by one.
    """
    index = rows.schema.get_field_index(cut.name)
    if index < 0 or pa.types.is_nested((column := decoded(rows.column(index))).type):
        return pa.nulls(rows.num_rows, _TEXT)
    if cut.edges is not None and not _is_text(column.type):
        return banded(_numbers(column), cut.edges)
    different = pc.dictionary_encode(column)
    texts = _words(different.dictionary)
    if cut.edges is not None:
        numbers = pd.to_numeric(texts.to_pandas(), errors="coerce").to_numpy(np.float64, na_value=np.nan)
        texts = banded(numbers, cut.edges).dictionary_decode()
    merged = pc.dictionary_encode(texts)
    codes = merged.indices.take(different.indices)
    return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), merged.dictionary.cast(pa.string()))


def banded(numbers: Array, edges: tuple[float, ...]) -> pa.DictionaryArray:
    """The band that each number lies in; nothing for what is no number."""
    codes = np.digitize(numbers, edges).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=np.isnan(numbers)), pa.array(bands(edges), pa.string()))


def _numbers(column: pa.Array) -> Array:
    try:
        numbers = pc.cast(column, pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # dates and the like are no numbers
        return np.full(len(column), np.nan)
    return np.asarray(pc.fill_null(numbers, np.nan))


def _words(values: pa.Array) -> pa.Array:
    """Values as text: whole numbers without a point, truth values as true and false, nothing where there is none."""
    kind = values.type
    if pa.types.is_floating(kind):
        plain = values.cast(pa.float64())
        whole = pc.and_(pc.equal(pc.floor(plain), plain), pc.less(pc.abs(plain), 1e15))
        texts = pc.if_else(
            whole, pc.cast(pc.cast(plain, pa.int64(), safe=False), pa.string()), pc.cast(plain, pa.string())
        )
        return pc.if_else(pc.fill_null(pc.is_finite(plain), False), texts, None)
    if pa.types.is_decimal(kind):
        return _words(values.cast(pa.float64()))
    try:
        texts = pc.cast(values, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are no text
        return pa.nulls(len(values), pa.string())
    texts = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[\pC\s]+", " "))
    return pc.utf8_slice_codeunits(pc.if_else(pc.equal(texts, ""), None, texts), 0, LONGEST)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
