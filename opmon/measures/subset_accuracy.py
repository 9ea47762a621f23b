"""The share of inputs all of whose labels are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.quantities import SUBSET_ACCURACY, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class SubsetAccuracy(Measure):
    """The share of inputs of which every class is right: those that are there and those that are not.

    The interval holds it on all inputs of the round in 95 of 100 rounds.
    It is that of the sampler's own estimator, which is unbiased.
    It assumes that labels are right, and that answering has nothing to do with being wrong among inputs that look
    alike to the variables.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("multilabel",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return SUBSET_ACCURACY

    def ratio(self, rows: Labelled) -> Ratio:
        return Ratio((rows.truth == rows.predicted).all(axis=1).astype(np.float64), np.ones(len(rows)))
