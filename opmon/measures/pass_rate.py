"""The share of outputs that annotators let pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.errors import InputError
from opmon.quantities import PASS_RATE, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class PassRate(Measure):
    """The share of outputs that annotators let pass, or to which they give a score of `at_least` or more.

    The interval holds the share of all inputs of the round in 95 of 100 rounds.
    It is unbiased.
    It is about these annotators: another team may let others pass.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("judged",)

    at_least: float = 0.5
    """The score that passes; an output that simply passed has 1, one that failed 0."""

    def __post_init__(self) -> None:
        if not 0 < self.at_least <= 1:
            raise InputError(f"at_least is a score above 0 and at most 1; got {self.at_least}")

    def quantity(self, unit: str | None = None) -> Quantity:
        return PASS_RATE

    def ratio(self, rows: Labelled) -> Ratio:
        passed = np.asarray(rows.truth, dtype=np.float64) >= self.at_least
        return Ratio(passed.astype(np.float64), np.ones(len(rows)))
