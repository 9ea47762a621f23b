"""A column that names several classes in each row: lists, JSON, names with a mark between, or yes and no by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon import label_sets
from opmon.errors import InputError
from opmon.scoring.inputs.columns import decoded
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Array

_LONGEST = 60


@dataclass(frozen=True, eq=False)
class LoggedSets:
    """What a column says, row by row."""

    sets: Array
    """The sets as text; empty where a row has none."""
    known: NDArray[np.bool_]
    rejected: Mapping[int, str]
    """Why a row has none."""
    strays: Mapping[int, str]
    """What is none of the classes, in rows that name some such."""


def logged_sets(
    name: str, column: pa.Array, classes: tuple[str, ...] | None, spellings: Spellings = AS_SPELT
) -> LoggedSets:
    """Read a column; an empty text or list is the empty set, and no value is no answer.

    >>> found = logged_sets("tags", pa.array(["a;b", "", None, "c"]), ("a", "b"))
    >>> found.sets.tolist(), list(found.rejected.values())
    (['["a", "b"]', '[]', '', ''], ["column 'tags' is empty", "column 'tags' holds 'c', which is none of the classes"])
    """
    values = decoded(column)
    sets = np.full(len(values), "", dtype=object)
    rejected: dict[int, str] = {}
    strays: dict[int, str] = {}
    read: dict[object, tuple[str, str | None, str | None]] = {}
    for row, value in enumerate(values.to_pylist()):
        if value is None:
            rejected[row] = f"column {name!r} is empty"
            continue
        key = _key(value)
        if key not in read:
            read[key] = _read(value, classes, spellings)
        text, stray, wrong = read[key]
        if stray is not None:
            strays[row] = stray
            rejected[row] = f"column {name!r} holds {stray[:_LONGEST]!r}, which is none of the classes"
        elif wrong is not None:
            rejected[row] = f"column {name!r} {wrong}"
        else:
            sets[row] = text
    return LoggedSets(sets, sets != "", rejected, strays)


def _read(value: object, classes: tuple[str, ...] | None, spellings: Spellings) -> tuple[str, str | None, str | None]:
    """A set as text, what of it is no class, and what else is wrong with it."""
    try:
        names = label_sets.parsed(_plain(value), classes, spellings)
    except InputError as exc:
        return "", None, str(exc)
    stray = None if classes is None else next((each for each in names if each not in classes), None)
    return label_sets.text_of(names), stray, None


def _plain(value: object) -> object:
    """A map, which Arrow gives as pairs, as an object."""
    if isinstance(value, list) and value and all(isinstance(each, tuple) and len(each) == 2 for each in value):
        return dict(value)
    return value


def _key(value: object) -> object:
    """By what a value is looked up that was read before."""
    return value if isinstance(value, str) else repr(value)
