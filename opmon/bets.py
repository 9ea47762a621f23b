"""The draws of a design as estimates of the mean loss, each on its own: what rules may bet on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.types import Floats


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms ``f_j``, ``k_j`` and ``c_j`` of ``v_j = k_j + f_j y_j`` for each draw; ``k`` comes from those before.

    All are 0 for a draw without an answer.
    """

    factors: Floats
    known: Floats
    stakes: Floats
    bound: Floats
    """The limits of ``f_j``, known before the labels of the wave; they limit bets on values below 0."""

    @property
    def reach(self) -> Floats:
        """How far below 0 the value of a loss of −1 can lie: known losses add 1 at most."""
        return np.asarray(self.bound + (1.0 if self.known.any() else 0.0))

    @property
    def excess(self) -> float:
        """The largest factor where one is beyond its bound, which no bet allows for; else 0."""
        beyond = self.factors > self.bound * (1 + 1e-9)
        return float(self.factors[beyond].max()) if beyond.any() else 0.0

    def highest(self, loss: float) -> Floats:
        """The most that a value could be where no loss exceeds ``loss``; no bound where a factor is beyond its own."""
        return np.asarray(self.known + self.bound * loss if not self.excess else np.full(len(self.known), np.inf))

    def of(self, losses: Floats) -> Floats:
        """``v_j``; a draw without an answer has the value 0."""
        return np.asarray(self.known + self.factors * np.nan_to_num(losses))
