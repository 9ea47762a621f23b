"""Neurons in equal sections: the coding of activations in one byte each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.samplers._checks import chunks

MOST_SECTIONS = 256
_ROWS = 1024


def sections_of(values: NDArray[Any], low: NDArray[Any], high: NDArray[Any], sections: int) -> NDArray[np.uint8]:
    """In which of ``sections`` equal parts of ``low … high`` each neuron's activation lies; both ends belong to a part.

    A neuron that never varies has one section, 0. What is coded is coded the same when it is coded again.

    >>> sections_of(np.array([[0.0], [0.5], [0.99], [1.0]]), np.array([0.0]), np.array([1.0]), 20)[:, 0].tolist()
    [0, 10, 19, 19]
    """
    low, high = low.astype(np.float64), high.astype(np.float64)
    varies = high > low
    scale = np.where(varies, sections / np.where(varies, high - low, 1), 0)
    found = np.empty(values.shape, dtype=np.uint8)
    for part in chunks(len(values), _ROWS):
        found[part] = np.minimum((values[part] - low) * scale, sections - 1)
    return found


def are_sections(values: NDArray[Any], sections: int) -> bool:
    """Whether the values are what :func:`sections_of` gave for so many sections, of all inputs of a frame."""
    if values.dtype != np.uint8:
        return False
    low, high = values.min(axis=0), values.max(axis=0)
    return bool(((low == 0) & ((high == sections - 1) | (high == 0))).all())
