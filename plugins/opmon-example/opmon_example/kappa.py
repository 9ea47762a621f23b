"""The measure ``kappa``: agreement of model and annotators beyond what chance alone gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure
from opmon.errors import InputError
from opmon.quantities import Quantity
from opmon.types import Floats, Labelled


@dataclass(frozen=True)
class Kappa(Measure):
    """Cohen's kappa: how much more often the model says what annotators say than it would by chance.

    1 is perfect, 0 no better than answers with the same shares of classes in random order.
    The interval holds it for all inputs of the round in 95 of 100 rounds, by linearisation.
    It assumes that labels are right, and is low where nearly all inputs are of one class, however good the model.
    """

    highest: ClassVar[float] = 1.0

    def quantity(self, unit: str | None = None) -> Quantity:
        return Quantity("kappa")

    def value(self, rows: Labelled, weights: Floats) -> float:
        agreed, chance, _ = self._shares(rows, weights)
        return (agreed - chance) / (1 - chance)

    def linearised(self, rows: Labelled, weights: Floats) -> Floats:
        agreed, chance, each = self._shares(rows, weights)
        right = (rows.truth == rows.predicted).astype(np.float64)
        total = float(weights.sum())
        by_agreed, by_chance = (right - agreed) / total, (each - 2 * chance) / total
        return (by_agreed * (1 - chance) - (1 - agreed) * by_chance) / (1 - chance) ** 2

    def _shares(self, rows: Labelled, weights: Floats) -> tuple[float, float, Floats]:
        """How often both agree, how often they would by chance, and what each row adds to that."""
        share, chance, each = weights / weights.sum(), 0.0, np.zeros(len(rows))
        for name in np.unique(np.concatenate((rows.truth, rows.predicted))):
            true, said = rows.truth == name, rows.predicted == name
            of, taken = float(share @ true), float(share @ said)
            chance += of * taken
            each += true * taken + said * of
        if chance >= 1:
            raise InputError(f"kappa is undefined: all {len(rows)} answers and predictions are of one class")
        return float(share @ (rows.truth == rows.predicted)), chance, each
