"""The precision at every input of a class, on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmon.measures._ranking import Members, Ranking, ranks
from opmon.quantities import AVERAGE_PRECISION, Quantity
from opmon.types import Floats
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class AveragePrecision(Ranking):
    """The area under the curve of precision and recall: for each input of a class, the share of inputs with at least
    its score that are of the class, on average.

    Without a class it is the plain mean over all classes. A model that knows nothing has the share of the class.
    The interval holds it for all inputs of the round in 95 of 100 rounds, as far as there are ten answers of the class
    and ten others; with fewer, a note tells so. It assumes that labels are right. With few labels of the class the
    estimate is a little high, by a fifth of its error at most.
    """

    no_surer_than = "a share of the smallest group"

    def groups(self, rows: Labelled) -> Sequence[Members]:
        return [true for _, true in self._columns(rows)]

    def _base(self) -> Quantity:
        return AVERAGE_PRECISION

    def _area(self, scores: Floats, true: Members, weights: Floats) -> float:
        found, all_ = self._at_least(scores, weights * true), self._at_least(scores, weights)
        return float((weights * true) @ (found / all_) / (weights @ true))

    def _influence(self, scores: Floats, true: Members, weights: Floats) -> Floats:
        """With ``P_i = F_i/N_i`` at the score of draw ``i``: the derivative of ``Σ_i a_i P_i / A₊`` by each weight."""
        of = float(weights @ true)
        found, all_ = self._at_least(scores, weights * true), self._at_least(scores, weights)
        precision = found / all_
        area = float((weights * true) @ precision / of)
        share = weights * true / of
        gain, loss = self._at_most(scores, share / all_), self._at_most(scores, share * precision / all_)
        return np.asarray(np.where(true, (precision - area) / of + gain, 0.0) - loss)

    @staticmethod
    def _at_least(scores: Floats, weights: Floats) -> Floats:
        below, _ = ranks(scores, weights)
        return np.asarray(float(weights.sum()) - below)

    @staticmethod
    def _at_most(scores: Floats, weights: Floats) -> Floats:
        below, same = ranks(scores, weights)
        return np.asarray(below + same)
