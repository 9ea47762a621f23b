"""The interval of a quantile: it ends where the interval of the share below a value does."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from opmon.abc import Quantile
from opmon.estimators._known import Known
from opmon.estimators._parts import share_bounds_of
from opmon.quantities import Quantity
from opmon.types import Estimate

ABOVE = "too few answers lie beyond the quantile to bound it above: the interval has no end there"
BELOW = "too few answers lie below the quantile to bound it: the interval begins at the least value there may be"


def of_quantile(known: Known, quantile: Quantile, quantity: Quantity, level: float) -> Estimate:
    """The weighted quantile, between two answers, with every value in its interval up to which the share asked for may
    reach (Woodruff, JASA 47, 1952)."""
    value = quantile.value(known.weights)
    if known.whole:
        return known.estimate(value, value, value, quantity, "woodruff", level, 0.0)
    value = quantile.between(known.weights)
    distinct, place = np.unique(quantile.values, return_inverse=True)
    count, share = len(distinct), quantile.share
    ones = np.ones(len(known.rows))

    def bounds(k: int) -> tuple[float, float]:
        """Of the share up to the value ``k``; of that below all of them with −1."""
        return share_bounds_of(known, (place <= k).astype(np.float64), ones, level)

    first = _first(count, lambda k: bounds(k)[1] >= share - 1e-12)
    last = _first(count, lambda k: bounds(k)[0] >= share - 1e-12)
    low = float(distinct[first]) if first > 0 or bounds(-1)[1] < share - 1e-12 else quantile.lowest
    high = float(distinct[last]) if last < count else math.inf
    notes = (*((ABOVE,) if last == count else ()), *((BELOW,) if low == quantile.lowest < distinct[0] else ()))
    return known.estimate(value, low, high, quantity, "woodruff", level, None, notes)


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The first of 0 … count − 1 for which ``holds`` is true, where it is false first and then true; else ``count``."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
