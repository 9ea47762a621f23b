"""The harmonic mean of precision and recall of a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmon.abc import Ratio
from opmon.measures._classes import OfClass, left_out, present, weighted_influence, weighted_mean
from opmon.quantities import F1, Quantity
from opmon.types import Floats
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class F1Score(OfClass):
    """The harmonic mean of precision and recall of a class, 2TP / (2TP + FP + FN): a ratio of two sums over inputs.

    `average: macro` is its plain mean over all classes; `average: weighted` gives each class the share of inputs that
    are truly of it.
    The interval holds the F1 on all inputs of the round in 95 of 100 rounds, as far as ten answers or more are of the
    class or said to be; with fewer it is wider, and a note tells so.
    It assumes that labels are right.
    """

    def quantity(self, unit: str | None = None) -> Quantity:
        return self.named(F1)

    def ratio(self, rows: Labelled) -> Ratio | None:
        return self._of(rows, self.class_) if self.class_ is not None else None

    def ratios(self, rows: Labelled) -> Sequence[Ratio] | None:
        if self.average == "weighted":
            return None
        return [self._of(rows, name) for name in present(rows, rows.truth, rows.predicted)]

    def value(self, rows: Labelled, weights: Floats) -> float:
        if self.average != "weighted":
            return super().value(rows, weights)
        return weighted_mean(rows, weights, lambda name: self._of(rows, name), present(rows, rows.truth))

    def linearised(self, rows: Labelled, weights: Floats) -> Floats | None:
        if self.average != "weighted":
            return super().linearised(rows, weights)
        return weighted_influence(rows, weights, lambda name: self._of(rows, name), present(rows, rows.truth))

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        if self.average is None:
            return ()
        return left_out(rows, present(rows, rows.truth, rows.predicted), "no answer is, or is said to be,")

    def _of(self, rows: Labelled, name: str) -> Ratio:
        true, said = rows.truth == name, rows.predicted == name
        return Ratio(2.0 * (true & said), true.astype(np.float64) + said)
