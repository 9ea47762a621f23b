"""The mean of the scores that annotators give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.quantities import MEAN_SCORE, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class MeanScore(Measure):
    """The mean of the scores from 0 to 1 that annotators give to the model's outputs.

    The interval holds the mean over all inputs of the round in 95 of 100 rounds.
    It is unbiased.
    It is about these annotators: another team may give other scores to the same outputs.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("judged",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return MEAN_SCORE

    def ratio(self, rows: Labelled) -> Ratio:
        return Ratio(np.asarray(rows.truth, dtype=np.float64), np.ones(len(rows)))
