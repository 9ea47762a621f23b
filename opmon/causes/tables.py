"""What the columns of a table say of each input: amounts, codes and words; not what names or times an input."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from opmon.causes.features import Feature, Measurements, Values
from opmon.causes.texts import is_text, text_features
from opmon.types import Json

MOST_COLUMNS = 200
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$")


def features_of(rows: Sequence[Mapping[str, Json]]) -> list[Feature]:
    """The features of rows that all have the same columns, or some of them."""
    names = list(dict.fromkeys(name for row in rows for name in row))[:MOST_COLUMNS]
    found: list[Feature] = []
    for name in names:
        found += _of_column(name, [row.get(name) for row in rows])
    return found


def _of_column(name: str, cells: Sequence[Json]) -> list[Feature]:
    known = [cell for cell in cells if cell is not None]
    if not known or any(type(cell) in (list, dict) for cell in known):
        return []
    if all(type(cell) is bool for cell in known):
        return [_values(name, [None if cell is None else str(cell) for cell in cells])]
    numbers = [_number(cell) for cell in cells]
    if all(number is not None for number, cell in zip(numbers, cells, strict=True) if cell is not None):
        values = np.array([math.nan if number is None else number for number in numbers])
        return [Measurements(name, values)]
    words = [None if cell is None else str(cell) for cell in cells]
    if all(_MOMENT.match(word) for word in words if word is not None):
        return []
    if is_text(words):
        return text_features(name, words)
    repeated = sum(count for count in Counter(words).values() if count > 1)
    return [_values(name, words)] if repeated > 0.3 * len(words) else []


def _values(name: str, words: Sequence[str | None]) -> Values:
    values = np.empty(len(words), dtype=object)
    values[:] = words
    return Values(name, values)


def _number(cell: Json) -> float | None:
    if type(cell) in (int, float):
        return float(cell)  # type: ignore[arg-type]
    if type(cell) is not str or len(cell) > 30:
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
