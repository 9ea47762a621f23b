"""A column of classes as their canonical names, spelt as opmon spells them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import InputError, SourceError
from opmon.scoring.inputs.columns import decoded
from opmon.spellings import AS_SPELT, Spellings
from opmon.values import canonical_class


def is_said(column: str, values: pa.Array) -> NDArray[np.bool_]:
    """The rows in which a column holds an answer, as a mask: blank text, NaN and null are none."""
    kind = values.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise SourceError(
            f"column {column!r} is {kind}, and a prediction is text, a number or a truth value; correct prediction in "
            f"'columns'"
        )
    known = values.is_valid()
    if pa.types.is_floating(kind):
        known = pc.and_(known, pc.fill_null(pc.is_finite(values), False))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        known = pc.and_(known, pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(values), ""), False))
    return np.asarray(known)


def class_names(column: str, given: pa.Array, spellings: Spellings = AS_SPELT) -> NDArray[np.str_]:
    """The names of the classes in a column without gaps: each different value is looked at once."""
    if not len(given):
        return np.empty(0, np.str_)
    coded = given if pa.types.is_dictionary(given.type) else pc.dictionary_encode(decoded(given))
    try:
        names = [spellings.name(canonical_class(value)) for value in coded.dictionary.to_pylist()]
    except InputError as exc:
        raise SourceError(f"column {column!r} cannot be the prediction: {exc}; correct 'columns'") from exc
    return np.array(names, dtype=np.str_).take(np.asarray(coded.indices))


def decided(
    column: str, numbers: NDArray[np.float64], threshold: float, classes: tuple[str, ...] | None
) -> NDArray[np.str_]:
    """The class that was answered, from the number that decided it: from ``threshold`` on the second of two."""
    if classes is None or len(classes) != 2:
        have = "they are not known" if classes is None else f"there are {len(classes)}"
        raise SourceError(
            f"columns.threshold decides between two classes, and {have}; name both in classes, or the column with the "
            f"class itself in columns.prediction"
        )
    outside = (numbers < 0) | (numbers > 1)
    if 0 <= threshold <= 1 and outside.any():
        raise SourceError(
            f"column {column!r} holds {numbers[outside][0]:g}, which is no probability, and columns.threshold is "
            f"{threshold:g}; correct columns.prediction, or give the threshold of that score"
        )
    return np.array(classes, dtype=np.str_)[(numbers >= threshold).astype(np.int64)]


def plain_numbers(column: str, given: pa.Array) -> NDArray[np.float64]:
    """The finite numbers in a column without gaps."""
    try:
        numbers = pc.cast(decoded(given), pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
        raise SourceError(f"column {column!r} does not hold numbers ({exc}); correct 'columns'") from exc
    values: NDArray[np.float64] = np.asarray(numbers)
    if not np.isfinite(values).all():
        raise SourceError(f"column {column!r} holds {values[~np.isfinite(values)][0]}; a prediction is a finite number")
    return values
