"""The share of the inputs that the model says are of a class which are so."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.abc import Ratio
from opmon.measures._classes import Members, OfClass, share_of
from opmon.quantities import PRECISION, Quantity


@dataclass(frozen=True)
class Precision(OfClass):
    """Of the inputs that the model says are of a class, the share that truly are.

    `average: macro` is the plain mean of the precisions of all classes; `average: weighted` gives each class the share
    of inputs that are truly of it.
    The interval holds the precision on all inputs of the round in 95 of 100 rounds, as far as ten answers or more are
    said to be of the class; with fewer it is wider, and a note tells so.
    It assumes that labels are right.
    """

    def _base(self) -> Quantity:
        return PRECISION

    def _of(self, true: Members, said: Members) -> Ratio:
        return share_of(true, said)
