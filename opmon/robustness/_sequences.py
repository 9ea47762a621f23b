"""Confidence sequences of a share, for inputs looked at in a random order without replacement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from opmon.types import Array, Floats


def share_bounds(right: Array, seen: NDArray[np.int64] | int, total: int, level: float) -> tuple[Floats, Floats]:
    """Bounds on the share of all ``total`` inputs that are right, after ``right`` of the first ``seen`` were.

    They hold at all times at once with probability ``level``, so that one may look after every block and stop when they
    are near enough. The set of totals R with prior(R) / posterior(R) < 1/α, for the uniform prior on 0..N: posterior
    R − S ~ BetaBinomial(N − n, 1 + S, 1 + n − S). When every input has been seen, both bounds are the share.

    Reference: Waudby-Smith and Ramdas, Confidence sequences for sampling without replacement, NeurIPS 2020,
    theorem 2.1.

    >>> low, high = share_bounds(np.array([50]), 50, 50, 0.95)
    >>> low.item(), high.item()
    (1.0, 1.0)
    """
    successes = np.asarray(right, dtype=np.float64)
    looked = np.broadcast_to(np.asarray(seen, dtype=np.float64), successes.shape)
    left = total - looked
    limit = np.log(1 - level) - np.log(total + 1.0)

    def inside(more: Floats) -> NDArray[np.bool_]:
        chosen = gammaln(left + 1.0) - gammaln(more + 1) - gammaln(left - more + 1)
        posterior = chosen + betaln(more + successes + 1, left - more + looked - successes + 1)
        return np.asarray(posterior - betaln(successes + 1, looked - successes + 1) > limit)

    mode = np.clip(np.floor(successes / np.maximum(looked, 1) * left), 0, left)
    low = _edge(np.zeros_like(successes), mode, inside)
    high = _edge(left.copy(), mode, inside)
    return (successes + low) / total, (successes + high) / total


def _edge(outer: Floats, inner: Floats, inside: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """The outermost whole number that is inside, between ``inner`` (which is) and ``outer``."""
    good, bad = inner.copy(), outer.copy()
    reached = inside(outer)
    good[reached] = outer[reached]
    while True:
        gap = np.abs(good - bad) > 1
        if not (gap & ~reached).any():
            return good
        middle = np.floor((good + bad) / 2)
        keep = inside(middle)
        good = np.where(gap & ~reached & keep, middle, good)
        bad = np.where(gap & ~reached & ~keep, middle, bad)
