"""The mean of the errors with their signs."""

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
class Bias(Measure):
    """The mean of prediction minus truth, in the unit of the label: above 0 the model says too much.

    The interval holds the mean over all inputs of the round in 95 of 100 rounds; where it holds 0, no bias is shown.
    Errors that cancel out do not show: see the MAE.
    It assumes that labels are right.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("regression",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return quantities.BIAS.measured_in(unit)

    def ratio(self, rows: Labelled) -> Ratio:
        truth, predicted = truth_numbers(rows)
        return Ratio(predicted - truth, np.ones(len(rows)), -math.inf, math.inf)
