"""How often each class is taken for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.errors import InputError
from opmon.measures._classes import said, share_of, truly
from opmon.quantities import Problem, Quantity
from opmon.types.labelled import Labelled

MOST = 30
"""Classes of which a table is still one that is looked at; 30 have 900 cells."""


@dataclass(frozen=True)
class ConfusionMatrix(Measure):
    """How often each class is taken for each: a table with a row for every true class, each cell with its interval.

    `of: truth` (the default) gives the share of the inputs of a true class that are said to be of each class; `of:
    frame` the share of all inputs.
    The interval of a cell holds its share in 95 of 100 rounds, each cell for itself; cells of which few were drawn
    have wide ones, and a note tells so.
    It assumes that labels are right.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)
    is_table: ClassVar[bool] = True

    of: Literal["truth", "frame"] = "truth"
    """What the cells of a row are shares of: the inputs of its `truth`, or of the whole `frame`."""

    def __post_init__(self) -> None:
        if self.of not in ("truth", "frame"):
            raise InputError(f"of is 'truth' or 'frame'; got {self.of!r}")

    def quantity(self, unit: str | None = None) -> Quantity:
        return Quantity("confusion matrix", share=True, better="neither")

    def check(self, classes: Sequence[str]) -> None:
        if len(classes) > MOST:
            raise InputError(
                f"a confusion matrix of {len(classes)} classes has {len(classes) ** 2:,} cells; it is made for "
                f"{MOST} classes at most: take the recall and precision of the classes that matter"
            )

    def cells(self, classes: Sequence[str]) -> tuple[Measure, ...]:
        return tuple(Cell(true, taken, self.of) for true in classes for taken in classes)


@dataclass(frozen=True)
class Cell(Measure):
    """The share of inputs of one class that are said to be of another."""

    truth: str
    predicted: str
    of: Literal["truth", "frame"] = "truth"

    def quantity(self, unit: str | None = None) -> Quantity:
        better: Literal["higher", "lower"] = "higher" if self.truth == self.predicted else "lower"
        return Quantity(f"confusion[{self.truth} as {self.predicted}]", share=True, better=better)

    def ratio(self, rows: Labelled) -> Ratio:
        true, taken = truly(rows, self.truth), said(rows, self.predicted)
        if self.of == "truth":
            return share_of(taken, true)
        return Ratio((true & taken).astype(np.float64), np.ones(len(rows)))
