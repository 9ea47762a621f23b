"""The root of the mean of the squared errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from opmon.abc import Measure, Ratio
from opmon.measures.mean_squared_error import MeanSquaredError
from opmon.quantities import RMSE, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class RootMeanSquaredError(Measure):
    """The root of the mean of the squared errors, in the unit of the label; large errors count for much.

    The interval holds it for all inputs of the round in 95 of 100 rounds: its ends are the roots of those of the mean
    squared error.
    The estimate is a little low, by an eighth of the square of its relative error: less than a tenth of the half width.
    It assumes that labels are right, and that errors much larger than all that were seen are rare.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("regression",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return RMSE.measured_in(unit)

    def ratio(self, rows: Labelled) -> Ratio:
        return MeanSquaredError().ratio(rows)

    def told(self, ratio: float) -> float:
        return math.sqrt(max(ratio, 0.0))

    def as_ratio(self, told: float) -> float:
        return told * abs(told)
