"""The share of predictions that are near enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio, truth_numbers
from opmon.errors import InputError
from opmon.problems import near_enough
from opmon.quantities import Problem, Quantity
from opmon.types.labelled import Labelled
from opmon.wording import in_unit, number


@dataclass(frozen=True)
class WithinTolerance(Measure):
    """The share of inputs whose prediction is off by no more than `tolerance`, in the unit of the label.

    The interval holds the share of all inputs of the round in 95 of 100 rounds.
    It is that of the sampler's own estimator, which is unbiased.
    It assumes that labels are right.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("regression",)

    tolerance: float
    """The largest error that is near enough."""

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < math.inf:
            raise InputError(f"tolerance is a number of at least 0, in the unit of the label; got {self.tolerance}")

    def quantity(self, unit: str | None = None) -> Quantity:
        return Quantity(f"share within {in_unit(number(self.tolerance), unit)}", share=True)

    def ratio(self, rows: Labelled) -> Ratio:
        truth, predicted = truth_numbers(rows)
        return Ratio(near_enough(truth, predicted, self.tolerance).astype(np.float64), np.ones(len(rows)))
