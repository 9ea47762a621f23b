"""Neurons in equal sections: the coding of activations in one byte each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.samplers._checks import chunks
from opmon.types import Array

MOST_SECTIONS = 256
_ROWS = 1024


def sections_of(values: Array, low: Array, high: Array, sections: int) -> NDArray[np.uint8]:
    """The number of the part that each activation lies in, of ``sections`` equal parts of ``low … high``.

    A neuron that never varies has one section, 0. Sections that are coded again stay the same.

    >>> sections_of(np.array([[0.0], [0.5], [0.99], [1.0]]), np.array([0.0]), np.array([1.0]), 20)[:, 0].tolist()
    [0, 10, 19, 19]
    """
    low, high = low.astype(np.float64), high.astype(np.float64)
    varies = high > low
    scale = np.where(varies, sections / np.where(varies, high - low, 1), 0)
    numbers = np.empty(values.shape, dtype=np.uint8)
    for part in chunks(len(values), _ROWS):
        numbers[part] = np.minimum((values[part] - low) * scale, sections - 1)
    return numbers


def are_sections(values: Array, sections: int) -> bool:
    """Whether the values are what :func:`sections_of` gave for so many sections, of all inputs of a frame."""
    if values.dtype != np.uint8:
        return False
    low, high = values.min(axis=0), values.max(axis=0)
    return bool(((low == 0) & ((high == sections - 1) | (high == 0))).all())
