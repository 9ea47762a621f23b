"""A classifier class by class, as the page on failures shows it."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.types import Floats

Interval = tuple[float, float, float]


@dataclass(frozen=True)
class ClassRow:
    """One class: a value and its bounds each, None where no answer tells."""

    name: str
    share: float
    """The estimated share of all inputs that are truly of it."""
    precision: Interval | None
    """How often it is true where the model says it."""
    recall: Interval | None
    """How often the model says it where it is true."""


@dataclass(frozen=True, eq=False)
class ClassTable:
    """The classes with failures, and which of them are taken for which."""

    rows: tuple[ClassRow, ...]
    shares: Floats
    """The estimated share of all inputs by truth (rows) and answer (columns), of the same classes."""
    left_out: int
    """So many classes are not told."""
    level: float

    @property
    def largest(self) -> float:
        """The largest share of a confused pair: what the table is coloured by."""
        wrong = self.shares.copy()
        wrong[range(len(wrong)), range(len(wrong))] = 0
        return float(wrong.max(initial=0.0))
