"""The auxiliary variables that come for free with the probabilities: larger = more suspicious."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.types import Numbers

FLOOR = 1e-6
"""The least value of a variable: above zero, so that every input can be drawn."""

EDGE = 1e-6
"""The least probability of a yes or no: float32 cannot hold one that is more certain."""
ENOUGH = 20
"""So many answers at least tell what an output gives; one of fewer that is odd is left out."""
_FEW = 32

Matrix = Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The largest probability of each input, its column (the first of equal ones), and the second largest."""

    first: Numbers
    second: Numbers
    column: NDArray[np.integer]


def by_class(values: Matrix) -> Matrix:
    """The numbers, one class after the other in memory where there are few: NumPy then adds and compares whole
    columns, which takes a tenth of the time that as many short rows take."""
    return np.asfortranarray(values) if 1 < values.shape[1] <= _FEW else values


def ranked(probabilities: Matrix) -> Ranking:
    """The two largest of each row; ``probabilities`` are not negative."""
    count, classes = probabilities.shape
    if classes > _FEW:
        column, rows = probabilities.argmax(axis=1), np.arange(count)
        others = probabilities.copy()
        others[rows, column] = 0
        return Ranking(probabilities[rows, column], others.max(axis=1), column)
    first = probabilities.max(axis=1)
    places = np.arange(classes, 0, -1, dtype=np.uint8)  # larger for earlier columns
    largest = (probabilities == first[:, None]).view(np.uint8) * places
    place = largest.max(axis=1)
    second = (probabilities * (largest != place[:, None])).max(axis=1)
    return Ranking(first, second, np.uint8(classes) - place)


def variables_of(probabilities: Matrix, ranking: Ranking | None = None) -> dict[str, NDArray[np.float32]]:
    """``confidence`` 1 − p₁, ``margin`` 1 − (p₁ − p₂), ``entropy`` −Σ p log p and ``gini`` 1 − Σ p² (DeepGini).

    p₁ ≥ p₂ are the two largest of an input's probabilities p (one row each), as in ``ranking``. All are at least
    ``FLOOR``, and the same to the last bit whatever other rows there are.

    >>> {name: round(float(value[0]), 3) for name, value in variables_of(np.array([[0.5, 0.25, 0.25]])).items()}
    {'confidence': 0.5, 'margin': 0.75, 'entropy': 1.04, 'gini': 0.625}
    """
    probabilities = by_class(probabilities)
    top = ranked(probabilities) if ranking is None else ranking
    products = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))
    variables = {
        "confidence": 1 - top.first,
        "margin": 1 - (top.first - top.second),
        "entropy": -summed(np.multiply(probabilities, products, out=products)),
        "gini": 1 - summed(np.multiply(probabilities, probabilities, out=products)),
    }
    return {name: np.maximum(values, FLOOR).astype(np.float32, copy=False) for name, values in variables.items()}


def softmax(logits: Matrix) -> Matrix:
    shifted = by_class(logits)
    shifted = np.exp(shifted - shifted.max(axis=1, keepdims=True))
    shifted /= summed(shifted)[:, None]
    result: Matrix = shifted
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
    result: Matrix = odds / summed(odds)[:, None]
    return result


def summed(values: Matrix) -> Numbers:
    """The sum of each row, with the same bits whatever other rows there are: of one row alone, stored class by class,
    NumPy adds in another order."""
    if len(values) > 1 or values.shape[1] > _FEW:
        result: Numbers = values.sum(axis=1)
        return result
    total = values[:, 0].copy()
    for column in range(1, values.shape[1]):
        total += values[:, column]
    return total
