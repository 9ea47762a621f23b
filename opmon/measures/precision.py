"""The share of the inputs that the model says are of a class which are so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmon.abc import Ratio
from opmon.measures._classes import OfClass, left_out, present, share_of, weighted_influence, weighted_mean
from opmon.quantities import PRECISION, Quantity
from opmon.types import Floats
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class Precision(OfClass):
    """Of the inputs that the model says are of a class, the share that truly are.

    `average: macro` is the plain mean of the precisions of all classes; `average: weighted` gives each class the share
    of inputs that are truly of it.
    The interval holds the precision on all inputs of the round in 95 of 100 rounds, as far as ten answers or more are
    said to be of the class; with fewer it is wider, and a note tells so.
    It assumes that labels are right.
    """

    def quantity(self, unit: str | None = None) -> Quantity:
        return self.named(PRECISION)

    def ratio(self, rows: Labelled) -> Ratio | None:
        return self._of(rows, self.class_) if self.class_ is not None else None

    def ratios(self, rows: Labelled) -> Sequence[Ratio] | None:
        if self.average == "weighted":
            return None
        return [self._of(rows, name) for name in present(rows, rows.predicted)]

    def value(self, rows: Labelled, weights: Floats) -> float:
        if self.average != "weighted":
            return super().value(rows, weights)
        return weighted_mean(rows, weights, lambda name: self._of(rows, name), self._both(rows))

    def linearised(self, rows: Labelled, weights: Floats) -> Floats | None:
        if self.average != "weighted":
            return super().linearised(rows, weights)
        return weighted_influence(rows, weights, lambda name: self._of(rows, name), self._both(rows))

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        if self.average is None:
            return ()
        return left_out(rows, present(rows, rows.predicted), "no answer is said to be")

    def _of(self, rows: Labelled, name: str) -> Ratio:
        return share_of(rows.truth == name, rows.predicted == name)

    def _both(self, rows: Labelled) -> list[str]:
        said = set(np.unique(rows.predicted).tolist())
        return [name for name in present(rows, rows.truth) if name in said]
