"""Which classes hold of each input, by one score for each of them, and how sure a model is of them all together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon import label_sets
from opmon.errors import ModelError
from opmon.scoring.outputs.variables import ENOUGH, FLOOR, sigmoid, summed
from opmon.types import Array, Numbers

HALF = 0.5
"""From this score on a class holds, where nothing else is said."""


def sets_of(scores: Numbers, threshold: float, classes: tuple[str, ...]) -> Array:
    """The sets as text, one for each row.

    >>> sets_of(np.array([[0.9, 0.2], [0.1, 0.4], [0.5, 0.8]]), 0.5, ("b", "a")).tolist()
    ['["b"]', '[]', '["a", "b"]']
    """
    return named(np.asarray(scores) >= threshold, classes)


def named(members: NDArray[np.bool_], classes: tuple[str, ...]) -> Array:
    """The text of each row of a table that says of each class whether it holds; each different row once."""
    different, which = np.unique(np.packbits(members, axis=1), axis=0, return_inverse=True)
    held = np.unpackbits(different, axis=1, count=members.shape[1]).astype(bool)
    texts = [label_sets.text_of(name for name, is_in in zip(classes, row, strict=True) if is_in) for row in held]
    return np.array(texts, dtype=object)[which.reshape(-1)] if texts else np.empty(0, dtype=object)


def variables_of_sets(scores: Numbers, threshold: float) -> dict[str, NDArray[np.float32]]:
    """What :func:`~opmon.scoring.outputs.variables.variables_of` tells of one class, of all of them together.

    With ``p`` the score of a class and ``q`` that of what was answered of it, ``p`` or ``1 − p``: ``confidence``
    1 − ∏ q, ``margin`` 1 − min |2p − 1|, ``entropy`` the sum of those of each yes or no, ``gini`` Σ 2p(1 − p).

    >>> found = variables_of_sets(np.array([[0.9, 0.2]]), 0.5)
    >>> {name: round(float(value[0]), 3) for name, value in found.items()}
    {'confidence': 0.28, 'margin': 0.4, 'entropy': 0.825, 'gini': 0.5}
    """
    p = np.clip(scores, 1e-6, 1 - 1e-6)
    answered = np.where(scores >= threshold, p, 1 - p)
    variables = {
        "confidence": 1 - np.exp(summed(np.log(answered))),
        "margin": 1 - np.abs(2 * p - 1).min(axis=1),
        "entropy": -summed(p * np.log(p) + (1 - p) * np.log(1 - p)),
        "gini": summed(2 * p * (1 - p)),
    }
    return {name: np.maximum(values, FLOOR).astype(np.float32, copy=False) for name, values in variables.items()}


def scores_in(values: Array, name: str, logits: bool) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A score from 0 to 1 for each class, and which rows have them; an error where half of many are others."""
    scores = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    finite: NDArray[np.bool_] = np.asarray(np.isfinite(scores).all(axis=1))
    if logits:
        scores = np.asarray(sigmoid(np.where(finite[:, None], scores, 0)))
    with np.errstate(invalid="ignore"):
        within: NDArray[np.bool_] = np.asarray(((scores >= -1e-3) & (scores <= 1 + 1e-3)).all(axis=1))
    good = finite & within
    if max(ENOUGH, 2 * int(good.sum())) <= int(finite.sum()):
        shown = ", ".join(f"{value:.4g}" for value in scores[finite & ~good][0, :4])
        raise ModelError(
            f"{name!r} should give a score from 0 to 1 for each class, and one row of it is {shown}…. Set "
            f"scores: logits if that is what it gives"
        )
    return np.asarray(np.where(good[:, None], np.clip(scores, 0, 1), 0.0)), good
