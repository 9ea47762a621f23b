"""The mean of what the model's probability of the truth costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.measures._probabilities import doubts, probabilities, runners_up, truths
from opmon.quantities import LOG_LOSS, Problem, Quantity
from opmon.types import Floats
from opmon.types.labelled import Labelled

LEAST = 1e-15


@dataclass(frozen=True)
class LogLoss(Measure):
    """The mean of −log p, with the probability p that the model gave to the true class; 0 is perfect.

    The interval holds the mean over all inputs of the round in 95 of 100 rounds; few large losses make it reach far up.
    A probability of 0 for the truth would make the mean infinite: it counts as 1e-15, a loss of 34.5, and a note tells
    how many there are. Where a model gives some class no probability, the interval allows for more than were drawn.
    It assumes that labels are right and that the scores are probabilities.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)
    needs_scores: ClassVar[bool] = True

    def quantity(self, unit: str | None = None) -> Quantity:
        return LOG_LOSS

    def ratio(self, rows: Labelled) -> Ratio:
        losses, given = (
            np.maximum(-np.log(np.maximum(self._of_truth(rows), LEAST)), 0.0),
            probabilities(rows, "log loss"),
        )
        rounded = bool((given < LEAST).any())
        feared, doubt = -np.log(np.maximum(given[runners_up(given)], LEAST)), doubts(given, rows)
        wrong, highest = rows.truth != rows.predicted, -math.log(LEAST) if rounded else math.inf
        return Ratio(losses, np.ones(len(rows)), 0.0, highest, failed=wrong, feared=feared, doubt=doubt, atom=rounded)

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        none = int((self._of_truth(rows) < LEAST).sum())
        if not none:
            return ()
        times = "1 answer" if none == 1 else f"{none} answers"
        return (f"the model gave the truth of {times} no probability at all: each counts as a loss of 34.5",)

    def _of_truth(self, rows: Labelled) -> Floats:
        given, true = probabilities(rows, "log loss"), truths(rows, "log loss")
        return np.asarray(given[np.arange(len(rows)), true.argmax(axis=1)])
