"""Arrow columns as a model takes them; a value that cannot be fed sets its row aside, with the reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.types import Array

DTYPES: dict[str, type[np.generic]] = {
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

_KNOWN = {pa.float16(): pa.float32(), pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


@dataclass(frozen=True, slots=True)
class Missing:
    """The values that a model is given where one is missing: NaN and empty text by default, or its own word for that.

    A model that takes whole numbers can be given no NaN, so that its row is set aside.
    """

    numbers: float = math.nan
    text: str | None = ""
    """None: it stays None, which is for an original and no graph."""
    refuse: bool = False
    """Set every row with a missing value aside instead."""
    own: bool = True
    """Whether the word of a model that knows missing texts takes the place of ``text``."""

    def of(self, word: str | None) -> Missing:
        """The same for a model that has this word for a missing text, or none."""
        return self if word is None or not self.own else replace(self, text=word)


AS_NAN = Missing()
REFUSED = Missing(refuse=True)


@dataclass
class Rejections:
    """The rows of a batch that cannot be scored, with the first reason for each, and where values are missing."""

    count: int
    reasons: dict[int, str] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    """In how many rows a column has no value."""
    _full: bool = False
    """Whether a column was looked at that has a value in every row."""
    _empty: NDArray[np.bool_] | None = None
    """The rows in which no column looked at so far has a value."""

    def lacks(self, name: str, gaps: NDArray[np.bool_] | None) -> None:
        """A column was looked at, and has no value in the rows ``gaps``; None: it has one in all of them."""
        self.missing[name] = 0 if gaps is None else int(gaps.sum())
        self._full |= gaps is None
        if gaps is not None and not self._full:
            self._empty = gaps if self._empty is None else self._empty & gaps

    def add_empty(self) -> None:
        """Set the rows aside that hold nothing at all: a model that stands gaps would answer them all the same."""
        if self._empty is not None and not self._full:
            self.add(self._empty, lambda row: f"the input is empty: {_named(list(self.missing))}")

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
    """The values themselves, in a type that Arrow's functions know: hardly any knows half floats, short decimals and
    views."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return decoded(column.dictionary).take(column.indices)
    if pa.types.is_run_end_encoded(kind):
        return decoded(pc.run_end_decode(column))
    if isinstance(kind, pa.BaseExtensionType):
        return decoded(column.storage)
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    known = _KNOWN.get(kind)
    return column if known is None else column.cast(known)


def numbers(name: str, column: pa.Array, dtype: type[np.generic], missing: Missing, rejected: Rejections) -> Array:
    """One number, or text, per row; what is returned for a rejected row means nothing."""
    column = decoded(column)
    if dtype is np.object_:
        return _texts(name, column, missing, rejected)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values, gaps = _parsed(name, column, rejected)
    else:
        values, gaps = _plain(name, column)
    cast, gaps = fitted(name, values, gaps, dtype, missing, rejected)
    rejected.lacks(name, gaps)
    if gaps is not None and not can_fill(dtype, missing):
        rejected.add(gaps, lambda row: f"column {name!r} is empty{_whole(dtype, missing)}")
    return cast


def fitted(
    name: str,
    values: Array,
    gaps: NDArray[np.bool_] | None,
    dtype: type[np.generic],
    missing: Missing,
    rejected: Rejections,
    rows: NDArray[np.int64] | None = None,
) -> tuple[Array, NDArray[np.bool_] | None]:
    """The values in the model's own dtype, finite, whole where it takes whole numbers, and within its range.

    And where one is missing, in ``gaps`` or as NaN: the model is given there what ``missing`` says. ``values`` has one
    entry, or one row of entries, for each row of the batch, or for those in ``rows``.
    """
    floating = np.issubdtype(dtype, np.floating)
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype, copy=False)
    if _fits(values, cast, dtype):
        bad = None
    else:
        nan = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
        gaps = nan if gaps is None else gaps | nan
        bad = (~np.isfinite(cast) if floating else cast != values) & ~gaps
    if gaps is not None and gaps.any():
        cast = np.where(gaps, missing.numbers if can_fill(dtype, missing) else 0, cast).astype(dtype, copy=False)
    else:
        gaps = None
    if bad is not None and bad.any():
        _set_aside(name, bad, dtype, rejected, rows)
    return cast, gaps


def _fits(values: Array, cast: Array, dtype: type[np.generic]) -> bool:
    """Whether no value is NaN, infinite, too large or broken by the cast; found in as few passes as can be."""
    if np.issubdtype(dtype, np.floating):
        whole = values.dtype.kind in "iub"
        if whole and (dtype is not np.float16):
            return True  # a whole number is always finite there
        return bool(np.isfinite(_square_sum(cast)) or np.isfinite(cast).all())
    return cast is values or np.array_equal(cast, values)


def _set_aside(
    name: str, bad: NDArray[np.bool_], dtype: type[np.generic], rejected: Rejections, rows: NDArray[np.int64] | None
) -> None:
    wrong = np.asarray(bad.any(axis=tuple(range(1, bad.ndim))))
    mask = np.zeros(rejected.count, dtype=bool)
    mask[(np.arange(len(wrong)) if rows is None else rows)[wrong]] = True
    kind = np.dtype(dtype).name
    rejected.add(mask, lambda row: f"column {name!r} holds a number that is not finite or no {kind}")


def can_fill(dtype: type[np.generic], missing: Missing) -> bool:
    """Whether a model can be given something in place of a missing number."""
    return not missing.refuse and bool(np.issubdtype(dtype, np.floating) or np.isfinite(missing.numbers))


def _whole(dtype: type[np.generic], missing: Missing) -> str:
    if missing.refuse:
        return ""
    return f", and the model takes {np.dtype(dtype).name} there: inputs.missing.numbers says what it is given"


def _square_sum(values: Array) -> float:
    """The sum of squares: finite only if all values are (and small enough), which takes one pass and not three."""
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.dot(flat, flat))


def _plain(name: str, column: pa.Array) -> tuple[Array, NDArray[np.bool_] | None]:
    """The numbers, and where there is none."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ModelError(f"column {name!r} is {kind}, and the model takes numbers there; leave it out of the inputs")
    gaps = None
    if column.null_count:
        gaps = np.asarray(column.is_null())
        column = pc.fill_null(column, 0)
    return np.asarray(column.to_numpy(zero_copy_only=False)), gaps


def _parsed(name: str, column: pa.Array, rejected: Rejections) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Text that should be numbers, such as a column that was text in one of the files; blank text is none."""
    blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), True)
    gaps = np.asarray(blank) if pc.any(blank).as_py() else None
    column = pc.if_else(blank, "0", column.cast(pa.string()))
    try:
        return np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)), gaps
    except pa.ArrowInvalid:
        texts = column.to_pylist()
    values = np.zeros(len(texts))
    bad = np.zeros(len(texts), dtype=bool)
    for row, text in enumerate(texts):
        try:
            values[row] = float(text)
        except ValueError:
            bad[row] = True
    rejected.add(bad, lambda row: f"column {name!r} is not a number: {texts[row][:40]!r}")
    return values, gaps


def _texts(name: str, column: pa.Array, missing: Missing, rejected: Rejections) -> Array:
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise ModelError(f"column {name!r} is {column.type}, and the model takes text there")
    gaps = np.asarray(column.is_null()) if column.null_count else None
    rejected.lacks(name, gaps)
    if gaps is not None and missing.refuse:
        rejected.add(gaps, lambda row: f"column {name!r} is empty")
    texts = column.cast(pa.string())
    if missing.text is not None:
        texts = pc.fill_null(texts, missing.text)
    return np.asarray(texts.to_numpy(zero_copy_only=False), dtype=object)


def _named(names: list[str]) -> str:
    """
    >>> _named(["age"]), _named(["age", "income"])
    ("column 'age' has no value", 'no value in age, income')
    """
    if len(names) == 1:
        return f"column {names[0]!r} has no value"
    return f"no value in {', '.join(names[:6])}{', …' if len(names) > 6 else ''}"
