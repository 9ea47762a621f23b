"""The share of the inputs of a class that the model finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opmon.abc import Ratio
from opmon.measures._classes import Members, OfClass, share_of
from opmon.quantities import RECALL, Quantity


@dataclass(frozen=True)
class Recall(OfClass):
    """Of the inputs that are truly of a class, the share that the model says are of it.

    `average: macro` is the plain mean of the recalls of all classes, which is the balanced accuracy.
    The interval holds the recall on all inputs of the round in 95 of 100 rounds, as far as ten answers or more are
    truly of the class; with fewer it is wider, and a note tells so.
    It assumes that labels are right. Few labels of a rare class leave it wide: misses that were not drawn cannot be
    ruled out.
    """

    follows_answer: ClassVar[bool] = True

    def _base(self) -> Quantity:
        return RECALL

    def _of(self, true: Members, said: Members) -> Ratio:
        return share_of(said, true)
