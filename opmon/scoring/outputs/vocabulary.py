"""The names of classes in a column, against those that the model answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from opmon.types import Array

STRAY = 0.001
"""One name alone, or so many of all, may be none of the model's classes: a slip, and no other vocabulary."""
T = TypeVar("T")
_SHOWN, _LISTED = 4, 12


def strays_of(names: Array, classes: Sequence[str] | None) -> NDArray[np.bool_]:
    """Where names are none of the classes; nowhere if the classes are not known."""
    if classes is None:
        return np.zeros(len(names), dtype=bool)
    return np.asarray(~np.isin(names.astype(np.str_), list(classes)))


def too_many(strays: int, of: int) -> bool:
    return strays > max(1, STRAY * of)


def other_words(what: str, strays: Sequence[str] | Mapping[str, int], of: int, classes: Sequence[str]) -> str:
    """The error that ``what`` is none of the model's classes, with both vocabularies and what the strays look like.

    >>> print(other_words("column 'y' holds labels that are", ["PAID", "PAID", "x"], 9, ["default", "paid"]))
    column 'y' holds labels that are none of the model's classes: PAID (2), x (1), 3 of 9; the model's classes are
    default, paid. Upper and lower case count.
    """
    counts = Counter(strays)
    words = [name for name in counts if name != "…"]
    return (
        f"{what} none of the model's classes: {most_frequent(counts)}, {counts.total()} of {of}; the model's "
        f"classes are {_listed(classes)}.{_hint(words, classes)}"
    )


def most_frequent(counts: Counter[T]) -> str:
    """The most frequent names with their counts, as text.

    >>> most_frequent(Counter({"0": 612, "1": 388}))
    '0 (612), 1 (388)'
    """
    more = ", …" if len(counts) > _SHOWN else ""
    return ", ".join(f"{str(name)[:40]} ({count})" for name, count in counts.most_common(_SHOWN)) + more


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f", … ({len(names)})" if len(names) > _LISTED else "")


def _hint(strays: Sequence[str], classes: Sequence[str]) -> str:
    """A hint at what the strays look like instead, where that can be seen."""
    if {name.casefold() for name in strays} & {name.casefold() for name in classes}:
        return " Upper and lower case count."
    if all(name.isdigit() and int(name) <= len(classes) for name in strays):
        return " They look like the numbers of the classes."
    if all(_is_share(name) for name in strays):
        return " They look like probabilities: columns.threshold says from where on the second of two classes is meant."
    return ""


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False
