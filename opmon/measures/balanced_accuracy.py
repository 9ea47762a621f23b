"""The mean of the recalls of all classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opmon.abc import Measure, Ratio
from opmon.measures.recall import Recall
from opmon.quantities import BALANCED_ACCURACY, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class BalancedAccuracy(Measure):
    """The plain mean of the recalls of all classes: how often the model is right where every class is as frequent.

    The interval holds it on all inputs of the round in 95 of 100 rounds, as far as ten answers or more are of each
    class; a class with fewer makes it wide, and a note tells so.
    A class of which there is no answer is left out, and a note names it.
    It assumes that labels are right.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)
    follows_answer: ClassVar[bool] = True

    def quantity(self, unit: str | None = None) -> Quantity:
        return BALANCED_ACCURACY

    def ratios(self, rows: Labelled) -> Sequence[Ratio] | None:
        return Recall(average="macro").ratios(rows)

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        return Recall(average="macro").notes(rows)
