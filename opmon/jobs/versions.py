"""The model version that answered each row of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.scoring.inputs.columns import decoded
from opmon.values import canonical_class

LONGEST = 200

UNNAMED = ""
"""The text of a row that names no version: the current one answered it."""


def said_of(column: pa.Array, name: str) -> Counter[str]:
    """The number of rows by the version that they name.

    >>> said_of(pa.array([3.0, 3.0, None, float("nan")], from_pandas=False), "served_by")
    Counter({'3': 2, '': 2})
    """
    column = decoded(column)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise SourceError(f"column {name!r} is {column.type}, and no model version; correct model_version in 'columns'")
    counts: Counter[str] = Counter()
    for entry in column.value_counts().to_pylist():
        counts[_text(entry["values"], name)] += entry["counts"]
    return counts


def rows_of(column: pa.Array, name: str, version: str, meant: Mapping[str, str]) -> NDArray[np.bool_]:
    """The rows that a model version answered, as a mask."""
    encoded = decoded(column).dictionary_encode()
    texts = [*(_text(value, name) for value in encoded.dictionary.to_pylist()), UNNAMED]
    its = np.array([meant.get(text, text) == version for text in texts])
    return np.asarray(its[encoded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)])


def _text(value: object, name: str) -> str:
    nothing = value is None or value != value or (isinstance(value, str) and not value.strip())
    text = UNNAMED if nothing else canonical_class(value)
    if len(text) > LONGEST:
        raise SourceError(
            f"column {name!r} holds {text[:40]!r}… of {len(text)} characters, which is no model version; correct "
            f"model_version in 'columns'"
        )
    return text
