"""The mean of the squared errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon import quantities
from opmon.abc import Measure, Ratio, truth_numbers
from opmon.quantities import Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class MeanSquaredError(Measure):
    """The mean of the squared differences between prediction and truth, in squared units of the label.

    The interval holds the mean over all inputs of the round in 95 of 100 rounds; where few large errors make up most
    of the mean, it reaches far upwards.
    It is that of the sampler's own estimator, which is unbiased.
    It assumes that labels are right, and that errors much larger than all that were seen are rare.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("regression",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return quantities.mean_squared_error(unit)

    def ratio(self, rows: Labelled) -> Ratio:
        truth, predicted = truth_numbers(rows)
        return Ratio((truth - predicted) ** 2, np.ones(len(rows)), 0.0, math.inf)
