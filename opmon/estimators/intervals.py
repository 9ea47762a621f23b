"""Wilson's interval, the yardstick of all others: a proportion under simple random sampling.

All bounds are for the mean outcome θ (the failure rate); accuracies are reported as ``1 − high .. 1 − low``.
Stratified and weighted designs have :mod:`_skewed_score`, unbounded losses :mod:`_losses`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from opmon.errors import InputError


class Interval(NamedTuple):
    """Bounds of the mean outcome; ``notes`` say what a reader must know, for instance why it is wide."""

    low: float
    high: float
    notes: tuple[str, ...] = ()


def effective_size(n: float, frame_size: float | None) -> float:
    """The with-replacement sample size that is worth ``n`` draws without replacement from ``frame_size`` inputs."""
    if frame_size is None or n == 0:
        return float(n)
    if n >= frame_size:
        return np.inf
    return float(n * (frame_size - 1) / (frame_size - n))


def wilson(mean: float, n: float, level: float = 0.95, frame_size: int | None = None) -> Interval:
    """Wilson's score interval for a proportion observed as ``mean`` in ``n`` draws.

    ``(p̂ + z²/2n ± z·sqrt(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n)`` with ``n`` replaced by ``n(N−1)/(N−n)`` when ``frame_size``
    says that the draws were without replacement. ``n`` may be fractional (an effective sample size).

    >>> low, high, _ = wilson(0.3, 50)
    >>> round(float(low), 4), round(float(high), 4)
    (0.191, 0.4375)
    """
    _require_level(level)
    size = effective_size(n, frame_size)
    if size == 0:
        return Interval(0.0, 1.0, ("no outcome is known",))
    if np.isinf(size):
        return Interval(mean, mean)
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    centre = (mean + z2 / (2 * size)) / (1 + z2 / size)
    radius = np.sqrt(z2 * mean * (1 - mean) / size + z2 * z2 / (4 * size * size)) / (1 + z2 / size)
    return Interval(min(max(0.0, centre - radius), mean), max(min(1.0, centre + radius), mean))


def _require_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {level}; 0.95 is usual")
