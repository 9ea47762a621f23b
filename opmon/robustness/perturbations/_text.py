"""Words of a text and their places; edits that are drawn once and taken one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
Texts = NDArray[np.object_]
T = TypeVar("T")
Edit = Callable[[str, float, float], str]
"""A text, and two uniform numbers in [0, 1): where, and how."""


def edited(texts: Texts, edits: int, rng: np.random.Generator, edit: Edit, most: int) -> Texts:
    """Every text after ``edits`` edits, each on the result of the one before.

    ``most`` is the highest number of edits of the perturbation: so many random numbers are drawn for each text, so that
    more edits begin with the same ones.
    """
    numbers = rng.random((len(texts), most, 2))
    result = np.empty(len(texts), dtype=object)
    for i, text in enumerate(texts.tolist()):
        changed = str(text)
        for where, how in numbers[i, :edits].tolist():
            changed = edit(changed, where, how)
        result[i] = changed
    return result


def chosen(items: Sequence[T], number: float) -> T:
    """The item that a uniform number falls on."""
    return items[min(int(number * len(items)), len(items) - 1)]


def like_case(word: str, model: str) -> str:
    """``word`` with the capitals of ``model``.

    >>> like_case("large", "Big"), like_case("large", "BIG")
    ('Large', 'LARGE')
    """
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
