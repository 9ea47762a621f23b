"""The scores of draws, as probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.types import Floats
from opmon.types.labelled import Labelled

SLACK = 1e-4
"""What rounding to single precision may add to a probability."""


def probabilities(rows: Labelled, measure: str) -> Floats:
    """The scores, one column per class; an error where some are no probabilities."""
    scores = np.asarray(rows.scores, dtype=np.float64)
    low, high = float(scores.min(initial=0.0)), float(scores.max(initial=0.0))
    if low < -SLACK or high > 1 + SLACK:
        raise InputError(
            f"{measure} takes the scores as probabilities, between 0 and 1; they lie between {low:.4g} and {high:.4g}. "
            "If they are logits, say so: scores: logits"
        )
    return np.clip(scores, 0.0, 1.0)


def runners_up(given: Floats) -> NDArray[np.bool_]:
    """The class of the second highest score of each row, one column per class; of a single class that one."""
    places = np.argsort(given, axis=1, kind="stable")
    second = places[:, -2] if given.shape[1] > 1 else places[:, -1]
    return np.asarray(np.arange(given.shape[1]) == second[:, None])


def doubts(given: Floats, rows: Labelled) -> Floats:
    """The probability that the model does not give to its own answer; to its likeliest class, where it has none."""
    own = rows.predicted[:, None] == np.array(rows.classes)
    return np.asarray(1 - np.where(own.any(axis=1), (given * own).sum(axis=1), given.max(axis=1)))


def truths(rows: Labelled, measure: str) -> NDArray[np.bool_]:
    """Which of the classes each row truly is of, one column per class; an error where one is of none of them."""
    if rows.truth.ndim == 2:
        return np.asarray(rows.truth, dtype=np.bool_)
    true = rows.truth[:, None] == np.array(rows.classes)
    without = ~true.any(axis=1)
    if without.any():
        names = ", ".join(sorted(set(rows.truth[without].tolist()))[:5])
        raise InputError(
            f"{measure} needs a score for every class, and the model has none for {names}; "
            f"it has: {', '.join(rows.classes)}"
        )
    return np.asarray(true)
