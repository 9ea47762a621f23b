"""The reliability table: how often the model is right, by how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators._known import Known
from opmon.estimators._linear import LinearEstimator
from opmon.estimators._parts import share_bounds_of
from opmon.types import Floats, Labelled, Sample
from opmon.wording import none_of


@dataclass(frozen=True, slots=True)
class Reliability:
    """A bin of confidence: how sure the model is of the inputs in it, and how often it is right."""

    begins: float
    ends: float
    share: float
    """The part of all inputs that lies in it."""
    answers: int
    confidence: float
    """The mean confidence there."""
    accuracy: float
    low: float
    high: float
    """The bounds of the accuracy."""


def reliability(
    estimator: LinearEstimator, sample: Sample, rows: Labelled, bins: int = 10, level: float = 0.95
) -> tuple[Reliability, ...]:
    """The bins that have answers, from the least sure: data for a figure beside the calibration error.

    Confidence is the score of the model's own answer; the accuracy of a bin is a ratio over the draws in it, with the
    interval of a slice. Draws without scores are left out.
    """
    usable = sample.answered & rows.scored
    if not usable.any():
        none = none_of(len(rows), "draw", "has any", "has none")
        raise InputError(f"a reliability table needs scores, and {none}")
    answers = Sample(sample.draw, np.where(usable, 0.0, np.nan), None, sample.propensity)
    known = Known(estimator, answers, rows.only(usable), usable)
    confidence, right = _sureness(known.rows)
    place = np.clip((confidence * bins).astype(np.int64), 0, bins - 1)
    return tuple(_bin(known, confidence, right, place == one, one, bins, level) for one in np.unique(place).tolist())


def _bin(
    known: Known, confidence: Floats, right: Floats, inside: NDArray[np.bool_], number: int, bins: int, level: float
) -> Reliability:
    mass = inside.astype(np.float64)
    share = float(known.weights @ mass)
    mean, accuracy = (float(known.weights @ (values * mass)) / share for values in (confidence, right))
    low, high = share_bounds_of(known, right * mass, mass, level)
    return Reliability(
        number / bins,
        (number + 1) / bins,
        share,
        int(inside.sum()),
        mean,
        accuracy,
        min(low, accuracy),
        max(high, accuracy),
    )


def _sureness(rows: Labelled) -> tuple[Floats, Floats]:
    scores = np.asarray(rows.scores, dtype=np.float64)
    own = rows.predicted[:, None] == np.array(rows.classes)
    return np.where(own, scores, 0.0).sum(axis=1), (rows.predicted == rows.truth).astype(np.float64)
