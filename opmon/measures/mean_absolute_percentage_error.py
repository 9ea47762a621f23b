"""The mean of the errors in per cent of the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio, truth_numbers
from opmon.errors import InputError
from opmon.quantities import MAPE, Problem, Quantity
from opmon.types.labelled import Labelled
from opmon.types.prospect import Foreseen, Prospect


@dataclass(frozen=True)
class MeanAbsolutePercentageError(Measure):
    """The mean of the absolute errors in per cent of the truth.

    Where the truth is 0 no such error exists: these inputs are left out, and a note tells how many there are.
    The interval holds the mean over all inputs of the round whose truth is not 0 in 95 of 100 rounds.
    Truths near 0 make single errors huge and the interval wide; the MAE has no such trouble.
    It assumes that labels are right, and that errors much larger than all that were seen are rare.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("regression",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return MAPE

    def ratio(self, rows: Labelled) -> Ratio:
        truth, predicted = truth_numbers(rows)
        counts = truth != 0
        if not counts.any():
            raise InputError("MAPE is undefined: the truth of every answer is 0; take the MAE")
        shares = np.divide(np.abs(truth - predicted), np.abs(truth), out=np.zeros(len(rows)), where=counts)
        return Ratio(100 * shares, counts.astype(np.float64), 0.0, math.inf)

    def foresee(self, prospect: Prospect) -> Foreseen | None:
        """More draws are spread over all inputs: a truth near 0 may hide where predictions are large."""
        found = super().foresee(prospect)
        return None if found is None else replace(found, of_part=True)

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        zeros = int((np.asarray(rows.truth, dtype=np.float64) == 0).sum())
        return (f"the truth of {zeros} of {len(rows)} answers is 0: they are left out",) if zeros else ()
