"""The share of all labels that are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.quantities import HAMMING_LOSS, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class HammingLoss(Measure):
    """The share of all pairs of an input and a class on which the model is wrong.

    The interval holds it on all inputs of the round in 95 of 100 rounds.
    It is unbiased: the mean over inputs of the share of classes that are wrong.
    It assumes that labels are right.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("multilabel",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return HAMMING_LOSS

    def ratio(self, rows: Labelled) -> Ratio:
        return Ratio((rows.truth != rows.predicted).mean(axis=1), np.ones(len(rows)))
