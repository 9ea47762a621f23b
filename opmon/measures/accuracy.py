"""The share of inputs on which the model is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.quantities import ACCURACY, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class Accuracy(Measure):
    """The share of inputs on which the model says what annotators say.

    The interval holds the accuracy on all inputs of the round in 95 of 100 rounds.
    It is that of the sampler's own estimator, which is unbiased.
    It assumes that labels are right, and that answering has nothing to do with being wrong among inputs that look
    alike to the variables.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)

    def quantity(self, unit: str | None = None) -> Quantity:
        return ACCURACY

    def ratio(self, rows: Labelled) -> Ratio:
        return Ratio((rows.truth == rows.predicted).astype(np.float64), np.ones(len(rows)))

    def possible(self, rows: Labelled) -> Sequence[Ratio]:
        return [Ratio(np.full(len(rows), right), np.ones(len(rows))) for right in (0.0, 1.0)]
