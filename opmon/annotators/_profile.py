"""The profile likelihood interval of the failure rate."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtri

from opmon.annotators.error_model import Fitting
from opmon.types import Floats

FIRST = 0.5
GROWTH = 1.7
HALVINGS = 7


def profile_bounds(fitting: Fitting, start: Floats, level: float) -> tuple[float, float]:
    """The failure rates whose likelihood, at the best of all other parameters, is not too far below the largest.

    Unlike a normal interval it knows that a failure rate ends at 0, that an error seldom seen may be larger by much and
    smaller by little, and that the two stand for each other.
    """
    best, least = fitting.best(start)
    most = least + float(ndtri(0.5 + level / 2)) ** 2 / 2
    lowest, highest = fitting.layout.limits[0]
    return _bound(fitting, best, most, lowest, 0.0), _bound(fitting, best, most, highest, 1.0)


def _bound(fitting: Fitting, best: Floats, most: float, end: float, beyond: float) -> float:
    """The failure rate where the likelihood is just too small, towards ``end``; ``beyond`` where it never is."""
    side, step = float(np.sign(end - best[0])), FIRST
    inside, warm = float(best[0]), best
    while True:
        outside = inside + side * step
        if side * (outside - end) >= 0:
            outside = end
        at, lost = fitting.best(warm, outside)
        if lost > most:
            break
        if outside == end:
            return beyond
        inside, warm, step = outside, at, step * GROWTH
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        at, lost = fitting.best(warm, middle)
        if lost > most:
            outside = middle
        else:
            inside, warm = middle, at
    return float(expit((inside + outside) / 2))
