"""The auxiliary variables that come for free with the probabilities: larger = more suspicious."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOOR = 1e-6
"""Every input can be drawn: no variable is zero."""

EDGE = 1e-6
"""No yes or no is taken for more certain than this: float32 holds no more."""

Matrix = NDArray[np.floating[Any]]


def variables_of(probabilities: Matrix) -> dict[str, NDArray[np.float32]]:
    """``confidence`` 1 − p₁, ``margin`` 1 − (p₁ − p₂), ``entropy`` −Σ p log p and ``gini`` 1 − Σ p² (DeepGini).

    p₁ ≥ p₂ are the two largest of an input's probabilities p (one row each). All are at least ``FLOOR``.

    >>> {name: round(float(value[0]), 3) for name, value in variables_of(np.array([[0.5, 0.25, 0.25]])).items()}
    {'confidence': 0.5, 'margin': 0.75, 'entropy': 1.04, 'gini': 0.625}
    """
    first = probabilities.max(axis=1)
    several = probabilities.shape[1] > 1
    second = np.partition(probabilities, -2, axis=1)[:, -2] if several else np.zeros_like(first)
    logarithm = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))
    found = {
        "confidence": 1 - first,
        "margin": 1 - (first - second),
        "entropy": -np.einsum("ij,ij->i", probabilities, logarithm),
        "gini": 1 - np.einsum("ij,ij->i", probabilities, probabilities),
    }
    return {name: np.maximum(values, FLOOR).astype(np.float32) for name, values in found.items()}


def softmax(logits: Matrix) -> Matrix:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: Matrix = shifted / shifted.sum(axis=1, keepdims=True)
    return result


def sigmoid(logits: Matrix) -> Matrix:
    with np.errstate(over="ignore"):
        result: Matrix = 1 / (1 + np.exp(-logits))
    return result


def only_one(independent: Matrix) -> Matrix:
    """Probabilities of classes that are each a yes or no of their own, given that exactly one of them is right.

    pᵢ/(1 − pᵢ), made to sum to one.

    >>> only_one(np.array([[0.5, 0.5, 0.0], [0.8, 0.5, 0.0]])).round(3)
    array([[0.5, 0.5, 0. ],
           [0.8, 0.2, 0. ]])
    """
    kept = np.clip(independent, EDGE, 1 - EDGE)
    odds = kept / (1 - kept)
    result: Matrix = odds / odds.sum(axis=1, keepdims=True)
    return result
