"""The mean of the absolute errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio, truth_numbers
from opmon.quantities import MAE, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class MeanAbsoluteError(Measure):
    """The mean distance between prediction and truth, in the unit of the label.

    The interval holds the mean over all inputs of the round in 95 of 100 rounds.
    It is made as that of the mean squared error: unbiased, corrected for skewness.
    It assumes that labels are right, and that errors much larger than all that were seen are rare.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("regression",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return MAE.measured_in(unit)

    def ratio(self, rows: Labelled) -> Ratio:
        truth, predicted = truth_numbers(rows)
        return Ratio(np.abs(truth - predicted), np.ones(len(rows)), 0.0, math.inf)
