"""Numbers on a line: where they lie, and which of them are written beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_LARGEST = 1e150
"""Beyond it a number is no part of a range."""
_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """From ``low`` to ``high``, laid from ``start`` to ``stop`` on the paper."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Where a value lies; one that is outside, or infinite, at the end that is nearer.

        >>> Axis(0, 10, 100, 200)(5), Axis(0, 10, 100, 200)(float("inf"))
        (150.0, 200)
        """
        value = min(max(value, self.low), self.high)
        if value in (self.low, self.high) or self.high <= self.low:
            return self.stop if value == self.high and self.high > self.low else self.start
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)

    def ticks(self, most: int) -> list[float]:
        """Round numbers along it, at most so many.

        >>> Axis(0.871, 0.962, 0, 1).ticks(5)
        [0.88, 0.9, 0.92, 0.94, 0.96]
        """
        span = self.high - self.low
        if not span > 0:
            return [self.low]
        rough = span / most
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(size * each for each in _STEPS if size * each >= rough * 0.999 or each == _STEPS[-1])
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) for k in range(first, last + 1)]


def around(values: Iterable[float], *, share: bool, margin: float = 0.06) -> tuple[float, float]:
    """The range that holds all finite values with some air; a share stays between 0 and 1.

    >>> around([0.9, 1.0, float("inf")], share=True)
    (0.894, 1.0)
    """
    finite = [value for value in values if abs(value) < _LARGEST]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    size = max(abs(low), abs(high))
    air = (high - low) * margin if high - low > 1e-9 * size else size * margin
    air = air if air > 1 / _LARGEST else 0.5
    low, high = low - air, high + air
    return (max(low, 0.0), min(high, 1.0)) if share else (low, high)


def at(number: float) -> str:
    """A coordinate, as short as it may be.

    >>> at(12.0), at(3.14159)
    ('12', '3.1')
    """
    return f"{number:.1f}".removesuffix(".0")


def path(points: Iterable[tuple[float, float]]) -> str:
    """A line through points."""
    return "M" + "L".join(f"{at(x)} {at(y)}" for x, y in points)
