"""How far the model's confidence is from how often it is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Gap, Measure, Ratio
from opmon.errors import InputError
from opmon.measures._probabilities import probabilities
from opmon.quantities import CALIBRATION_ERROR, Problem, Quantity
from opmon.types import Floats
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class CalibrationError(Measure):
    """How far the model's confidence in its answer is from how often it is right, on average over bins of confidence.

    10 % means that inputs on which it is 80 % sure are right 70 or 90 times in 100, say. 0 is perfect.
    Chance alone adds to gaps of few labels, and the estimate takes that out: below 0 means hardly a gap, read it as 0.
    On average it is off by up to two fifths of its standard error, mostly low; by more where gaps change sign often.
    The interval holds the mean gap on all inputs of the round in at least 95 of 100 rounds.
    It assumes that labels are right and that the scores are probabilities. Its value depends on the number of bins.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)
    needs_scores: ClassVar[bool] = True

    bins: int = 10
    """The number of bins, all equally wide, that confidence is divided into."""

    def __post_init__(self) -> None:
        if not 2 <= self.bins <= 100:
            raise InputError(f"bins is a whole number from 2 to 100; got {self.bins}")

    def quantity(self, unit: str | None = None) -> Quantity:
        return CALIBRATION_ERROR

    def gaps(self, rows: Labelled) -> Sequence[Gap]:
        confidence, right = sureness(rows)
        place, whole = self.bin_of(confidence), np.ones(len(rows))
        gaps = []
        for one in np.unique(place):
            inside = (place == one).astype(np.float64)
            ratio = Ratio(inside * (confidence - right), whole, -1.0, 1.0)
            gaps.append(Gap(ratio, inside * confidence * (1 - confidence)))
        return gaps

    def bin_of(self, confidence: Floats) -> NDArray[np.int64]:
        """The bin of each confidence, from 0."""
        return np.minimum((confidence * self.bins).astype(np.int64), self.bins - 1)


def sureness(rows: Labelled) -> tuple[Floats, Floats]:
    """The probability that the model gives to its own answer, and whether that is right."""
    given = probabilities(rows, "calibration error")
    own = rows.predicted[:, None] == np.array(rows.classes)
    if not own.any(axis=1).all():
        names = ", ".join(sorted(set(rows.predicted[~own.any(axis=1)].tolist()))[:5])
        raise InputError(f"calibration error needs a score for every answer, and the model has none for {names}")
    return given[own], (rows.predicted == rows.truth).astype(np.float64)
