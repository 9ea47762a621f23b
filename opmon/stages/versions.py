"""Which model version answered each input, as the log says it: 3, v3, @champion, models:/digits/3.

What a log says is looked up once, when its round opens, and kept in the round's plan: an alias may mean another version
a day later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Registry
from opmon.errors import NotFoundError, SourceError
from opmon.registry.addresses import model_of, version_address
from opmon.scoring.inputs.columns import decoded
from opmon.types import ModelVersion
from opmon.values import canonical_class

LONGEST = 200
MOST = 100
"""So many versions cannot answer the inputs of one round: the column is another one."""

UNNAMED = ""
"""What a row says that names no version: the current one answered it."""


def said_of(column: pa.Array, name: str) -> Counter[str]:
    """How many rows say what of their version.

    >>> said_of(pa.array([3.0, 3.0, None, float("nan")], from_pandas=False), "served_by")
    Counter({'3': 2, '': 2})
    """
    column = decoded(column)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise SourceError(f"column {name!r} is {column.type}, and no model version; correct model_version in 'columns'")
    found: Counter[str] = Counter()
    for entry in column.value_counts().to_pylist():
        found[_text(entry["values"], name)] += entry["counts"]
    return found


def versions_meant(said: Iterable[str], name: str, model: ModelVersion, registry: Registry) -> dict[str, str]:
    """By what the log says, the version that it means: itself where the registry does not know it (yet)."""
    texts = sorted({*said, UNNAMED})
    if len(texts) > MOST:
        raise SourceError(
            f"column {name!r} names more than {MOST} model versions, such as {', '.join(map(repr, texts[1:4]))}; "
            f"correct model_version in 'columns'"
        )
    return {text: _meant(text, name, model, registry) for text in texts}


def rows_of(column: pa.Array, name: str, version: str, meant: Mapping[str, str]) -> NDArray[np.bool_]:
    """Which rows a model version answered."""
    encoded = decoded(column).dictionary_encode()
    texts = [*(_text(value, name) for value in encoded.dictionary.to_pylist()), UNNAMED]
    its = np.array([meant.get(text, text) == version for text in texts])
    return np.asarray(its[encoded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)])


def _text(value: Any, name: str) -> str:
    nothing = value is None or value != value or (isinstance(value, str) and not value.strip())
    text = UNNAMED if nothing else canonical_class(value)
    if len(text) > LONGEST:
        raise SourceError(
            f"column {name!r} holds {text[:40]!r}… of {len(text)} characters, which is no model version; correct "
            f"model_version in 'columns'"
        )
    return text


def _meant(text: str, name: str, model: ModelVersion, registry: Registry) -> str:
    if text == UNNAMED:
        return model.version
    address = version_address(model.name, text)
    if address is None:
        return text
    if model_of(address) != model.name:
        raise SourceError(
            f"column {name!r} names {text!r}, and the monitor watches {model.name!r}: a log of several models needs a "
            f"source of its own for each. Correct 'source', or model_version in 'columns'"
        )
    if "@" not in address:
        return address.rpartition("/")[2]
    try:
        return registry.resolve(address).version
    except NotFoundError:
        return text
