"""How often an input of a class has a higher score than another input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.measures._ranking import Members, Ranking, ranks
from opmon.quantities import AUC, Quantity
from opmon.types import Floats


@dataclass(frozen=True)
class AreaUnderCurve(Ranking):
    """The share of pairs of an input of a class and another input in which the first has the higher score: 0.5 is
    chance, 1 is perfect.

    Without a class it is the plain mean over all classes, each against the others.
    The interval holds it for all inputs of the round in 95 of 100 rounds, as far as there are ten answers of the class
    and ten others; with fewer, a note tells so.
    It assumes that labels are right; only the order of scores counts.
    """

    no_surer_than = "a share"

    def _base(self) -> Quantity:
        return AUC

    def _area(self, scores: Floats, true: Members, weights: Floats) -> float:
        beaten = self._beaten(scores, ~true, weights)
        return float((weights * true) @ beaten / (weights @ true))

    def _influence(self, scores: Floats, true: Members, weights: Floats) -> Floats:
        """``(share of others below − AUC)/A₊`` of an input of the class, ``(share of these above − AUC)/A₋`` else."""
        beaten, lost = self._beaten(scores, ~true, weights), 1 - self._beaten(scores, true, weights)
        of, others = float(weights @ true), float(weights @ ~true)
        area = float((weights * true) @ beaten / of)
        return np.asarray(np.where(true, (beaten - area) / of, (lost - area) / others))

    @staticmethod
    def _beaten(scores: Floats, whom: Members, weights: Floats) -> Floats:
        """The share of ``whom`` with a lower score than each draw; half of those with the same."""
        below, same = ranks(scores, weights * whom)
        return np.asarray((below + same / 2) / float(weights @ whom))
