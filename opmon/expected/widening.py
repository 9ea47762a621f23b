"""How much wider an interval has to be than its variance says, by how far off predictions were before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

FORGETS = 0.9
"""A round counts so much less than the one after it."""
TRUSTED = 6.0
"""So many rounds are taken to have been foreseen as they should be, before any was."""
FREEDOM = 8.0
"""The degrees of freedom of an interval before any round."""


@dataclass(frozen=True)
class Miss:
    """How far off a prediction was, once labels had come."""

    number: int
    """The round's."""
    off: float
    """The prediction minus the estimate."""
    sd: float
    """The standard deviation that the prediction had, before it was widened."""
    noise: float
    """The variance of the estimate: it is no truth."""


@dataclass(frozen=True)
class Widening:
    """A factor for the standard deviation, and the degrees of freedom of the interval."""

    factor: float
    freedom: float

    @classmethod
    def of(cls, misses: Sequence[Miss], number: int) -> Widening:
        """From the rounds before a round: ``factor² = (k + Σ λᵃ z²)/(k + Σ λᵃ)``, at least 1, where ``z`` is a miss by
        what it should have been and ``a`` how many rounds ago it was."""
        ages = [FORGETS ** (number - 1 - each.number) for each in misses]
        scores = [each.off**2 / (each.sd**2 + each.noise) for each in misses]
        known = sum(ages)
        square = (TRUSTED + sum(age * score for age, score in zip(ages, scores, strict=True))) / (TRUSTED + known)
        return cls(max(1.0, square**0.5), FREEDOM + known)

    def half(self, sd: float, level: float) -> float:
        """Half the width of an interval."""
        return float(stdtrit(self.freedom, (1 + level) / 2)) * sd * self.factor
