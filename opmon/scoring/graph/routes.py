"""Sets of classes that share one product with their traces, masked so that an input meets those of its own class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

TOGETHER = 1536
"""So many traces of several classes are compared in one product: of small classes, one product each would be slow."""
FORBIDDEN = np.float32(-1e30)
"""The number that is added to the product with a trace of another class."""


def together(sizes: Mapping[int, int], most: int = TOGETHER) -> list[tuple[int, ...]]:
    """The classes in sets of at most ``most`` traces, smallest classes first; larger ones stay by themselves.

    >>> together({0: 5, 1: 2, 2: 9, 3: 3}, most=6)
    [(1, 3), (0,), (2,)]
    """
    sets: list[tuple[int, ...]] = []
    room = -1
    for number in sorted(sizes, key=lambda number: (sizes[number], number)):
        if sizes[number] > room:
            sets.append(())
            room = most
        sets[-1] = (*sets[-1], number)
        room -= sizes[number]
    return sets


def codes(count: int) -> NDArray[np.float32]:
    """A row of zeros and ones for each of ``count`` classes: the two digits of its number, each one-hot.

    The product of a class's code with its own :func:`forbidding` is exactly zero in any order of summation, and with
    that of another class at most ``FORBIDDEN``.
    """
    base = math.ceil(math.sqrt(count))
    numbers = np.arange(count)
    digits = (numbers // base, numbers % base) if count > 4 else (numbers,)
    return np.concatenate([np.eye(int(digit.max()) + 1, dtype=np.float32)[digit] for digit in digits], axis=1)


def forbidding(classes: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """The columns that traces of ``classes``, numbers below ``count``, have beside their neurons."""
    return np.asarray((1 - codes(count)[classes]) * FORBIDDEN, np.float32)


def local_numbers(sets: Sequence[Sequence[int]], columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The set of each class (−1: none), and the number of the class in it."""
    which, number = np.full(columns, -1, np.int64), np.zeros(columns, np.int64)
    for i, chosen in enumerate(sets):
        which[list(chosen)], number[list(chosen)] = i, np.arange(len(chosen))
    return which, number
