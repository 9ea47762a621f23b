"""The share of the inputs of a class that the model finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opmon.abc import Ratio
from opmon.measures._classes import OfClass, left_out, present, share_of
from opmon.quantities import RECALL, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class Recall(OfClass):
    """Of the inputs that are truly of a class, the share that the model says are of it.

    `average: macro` is the plain mean of the recalls of all classes, which is the balanced accuracy; `average:
    weighted` gives each class the share of inputs that are of it, which is the accuracy.
    The interval holds the recall on all inputs of the round in 95 of 100 rounds, as far as ten answers or more are
    truly of the class; with fewer it is wider, and a note tells so.
    It assumes that labels are right. Few labels of a rare class leave it wide, and misses that were not drawn cannot
    be ruled out.
    """

    def quantity(self, unit: str | None = None) -> Quantity:
        return self.named(RECALL)

    def ratio(self, rows: Labelled) -> Ratio | None:
        if self.average == "weighted":
            return share_of(rows.truth == rows.predicted, rows.truth == rows.truth)
        return self._of(rows, self.class_) if self.class_ is not None else None

    def ratios(self, rows: Labelled) -> Sequence[Ratio]:
        return [self._of(rows, name) for name in present(rows, rows.truth)]

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        if self.average != "macro":
            return ()
        return left_out(rows, present(rows, rows.truth), "no answer is truly")

    def _of(self, rows: Labelled, name: str) -> Ratio:
        return share_of(rows.predicted == name, rows.truth == name)
