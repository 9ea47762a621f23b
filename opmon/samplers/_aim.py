"""The aim of the adaptive sampler: sampling densities between ``estimate`` and ``expose``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.samplers import _frontier
from opmon.types import Numbers
from opmon.types.prospect import Foreseen

UNSEEN = 4.0
"""Failures per budget that any input is taken to hide beyond what the model predicts: z² = 3.8 is what the upper end of
an interval adds to none seen. See :meth:`Aim.later`."""
POWER = 1.5
LIFT = 1.6
"""Failures relative to simple random sampling that the middle of the knob wants, if a bounded share will do."""
REACH = 0.73
"""The share that ``expose`` takes of the failures that could be had beyond Neyman's: the last cost most precision."""


@dataclass(frozen=True)
class Aim:
    """Densities of sampling, relative to uniform sampling (mean 1 over the frame).

    ``first_floor`` and ``floor`` are the shares drawn uniformly: no weight exceeds their inverse. Up to the middle, a
    later wave mixes a precise and an exposing density; the exposing share is the least one that reaches ``LIFT`` times
    the failures of simple random sampling, between ``least`` and ``most``. Beyond, ``far`` of it is drawn at a point of
    :mod:`_frontier`.
    """

    first_floor: float
    floor: float
    least: float
    most: float
    far: float
    first_share: float
    """The first wave's share of the budget."""
    smallest: float
    """Smaller budgets are drawn in one wave: too few labels to learn from."""
    mean_floor: float
    """The share drawn uniformly of a draw that aims at a mean over all inputs, such as a cost."""
    part_floor: float
    """The same of one that aims at a ratio over a part of them, such as recall: what few labels of the bulk cannot rule
    out makes its interval wide."""
    later_value: float
    """The worth of a draw of a later wave beside one of this wave, by which the waves' shares are fixed beforehand."""

    @classmethod
    def of(cls, aim: float) -> Aim:
        """The settings between 0 (``estimate``) and 1 (``expose``)."""

        def between(estimate: float, middle: float, expose: float) -> float:
            return float(np.interp(aim, (0.0, 0.5, 1.0), (estimate, middle, expose)))

        return cls(
            first_floor=between(0.8, 0.7, 0.2),
            floor=between(0.3, 0.2, 0.07),
            least=between(0.0, 0.2, 0.2),
            most=between(0.0, 0.6, 0.6),
            far=between(0.0, 0.0, 1.0),
            first_share=between(0.3, 0.3, 0.15),
            smallest=between(80.0, 80.0, 20.0),
            mean_floor=between(0.4, 0.35, 0.1),
            part_floor=between(0.65, 0.6, 0.2),
            later_value=between(1.2, 1.0, 0.7),
        )

    def uniform(self, foreseen: Foreseen) -> float:
        """The share drawn uniformly of a draw that aims at a measure."""
        return self.part_floor if foreseen.of_part else self.mean_floor

    def first(self, score: Numbers, population: NDArray[np.int64]) -> Numbers:
        """The first wave, before any label: a defensive mixture of uniform and PPS over all variables."""
        return self.first_floor + (1 - self.first_floor) * _relative(score, population)

    def later(self, score: Numbers, population: NDArray[np.int64], budget: int, draws: int, binary: bool) -> Numbers:
        """A later wave of ``draws``: ``score`` is the predicted log odds of failure ``f``, or the predicted log loss.

        Precise is ``sqrt((f + u)(1 − f))``, Neyman's allocation where every input may hide ``u = UNSEEN/budget``
        failures more than predicted: the upper end of the interval is about what was not seen, not about what was.
        Exposing is ``f^POWER``. Losses: the predicted loss, and its power.
        """
        if binary:
            rate = 1 / (1 + np.exp(-score))
            variance = (rate + UNSEEN / (budget + UNSEEN)) * (1 - rate)
        else:
            rate = np.exp(score - score.max())
            variance = rate**2
        mixed = self._mixed(np.sqrt(variance), rate, population) if self.far < 1 else 0.0
        exposing = _frontier.density(variance, rate, population, draws, REACH) if self.far > 0 else 0.0
        return np.asarray(self.floor + (1 - self.floor) * ((1 - self.far) * mixed + self.far * exposing))

    def _mixed(self, spread: Numbers, rate: Numbers, population: NDArray[np.int64]) -> Numbers:
        precise, exposing = _relative(spread, population), _relative(rate**POWER, population)
        expected = population * _relative(rate, population) / population.sum()
        low, high = (float(self.floor + (1 - self.floor) * (expected @ density)) for density in (precise, exposing))
        share = min(max((LIFT - low) / max(high - low, 1e-9), self.least), self.most)
        return (1 - share) * precise + share * exposing


def _relative(values: Numbers, population: NDArray[np.int64]) -> Numbers:
    mean = float(population @ values) / population.sum()
    return np.asarray(values / mean) if mean > 0 else np.ones_like(values)
