"""The harmonic mean of precision and recall of a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Ratio
from opmon.measures._classes import Members, OfClass
from opmon.quantities import F1, Quantity


@dataclass(frozen=True)
class F1Score(OfClass):
    """The harmonic mean of precision and recall of a class, 2TP / (2TP + FP + FN): a ratio of two sums over inputs.

    `average: macro` is its plain mean over all classes, `weighted` one by how many inputs are truly of each.
    The interval holds the F1 on all inputs of the round in 95 of 100 rounds, as far as ten answers or more are of the
    class or said to be; with fewer it is wider, and a note tells so. Estimates are then low on average over rounds, by
    up to a third of their standard error. It assumes that labels are right.
    """

    follows_answer: ClassVar[bool] = True

    def _base(self) -> Quantity:
        return F1

    def _of(self, true: Members, said: Members) -> Ratio:
        return Ratio(2 * (true & said).astype(np.float64), true.astype(np.float64) + said, heaviest=2.0)
