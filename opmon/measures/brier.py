"""The mean squared difference between probabilities and truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.measures._probabilities import doubts, probabilities, runners_up, truths
from opmon.quantities import BRIER, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class Brier(Measure):
    """The mean squared distance of the model's probabilities from the truth, summed over classes; 0 is perfect.

    With two classes it is that of one of them, between 0 and 1; with more it lies between 0 and 2.
    The interval holds the mean over all inputs of the round in 95 of 100 rounds.
    It is unbiased, as the mean squared error of a regression is.
    It assumes that labels are right and that the scores are probabilities.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)
    needs_scores: ClassVar[bool] = True

    def quantity(self, unit: str | None = None) -> Quantity:
        return BRIER

    def ratio(self, rows: Labelled) -> Ratio:
        given, true = probabilities(rows, "the Brier score"), truths(rows, "the Brier score")
        part = 0.5 if len(rows.classes) == 2 else 1.0
        squares = part * ((given - true) ** 2).sum(axis=1)
        feared = part * ((given - runners_up(given)) ** 2).sum(axis=1)
        wrong = rows.truth != rows.predicted
        doubt = doubts(given, rows)
        return Ratio(squares, np.ones(len(rows)), 0.0, 2 * part, failed=wrong, feared=feared, doubt=doubt)
