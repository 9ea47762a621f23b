"""The interval of a count: the exact test inverted, by default with the mid-P correction.

Mid-P is as short as Wilson's interval on average, but without its collapse near 0 and 1 (coverage down to 0.85 at
n = 50). Lancaster, JASA 56 (1961); Brown, Cai and DasGupta, Statistical Science 16 (2001).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

ROUNDING = 1e-9


@functools.lru_cache(maxsize=4096)
def counted(failures: int, n: int, level: float, size: int | None = None, mid: bool = True) -> tuple[float, float]:
    """The interval of a failure rate after ``failures`` in ``n`` draws, from ``size`` inputs without replacement.

    With ``size`` None the draws are independent (binomial), else hypergeometric: a census has no width.
    """
    tail = (1 - level) / 2
    if size is None:
        return _binomial(failures, n, tail, mid)
    return _hypergeometric(failures, n, size, tail, mid)


def mid_p(failures: float, n: float, level: float) -> tuple[float, float]:
    """The mid-P interval after ``failures`` in ``n`` independent draws; both may be fractional, such as weighted ones.

    >>> low, high = mid_p(0.5, 40.0, 0.95)
    >>> round(low, 4), round(high, 3)
    (0.0, 0.096)
    """
    if n <= 0:
        return 0.0, 1.0
    share = min(max(failures / n, 0.0), 1.0)
    return weighted_counts(share, share / n, 1 / n, level)


def weighted_counts(
    share: float, spread: float, heaviest: float, level: float, mid: bool = True
) -> tuple[float, float]:
    """The interval of a share seen as ``Σ w_k`` over the failing draws, with ``spread`` ``Σ w_k²`` over them.

    The tails ``P(X ≥ x)`` and ``P(X > x)`` are incomplete beta functions, which need no whole numbers; the second has
    one more failing draw, of the weight ``heaviest``. Mid-P is their mean. See :func:`._ratios.share_bounds`.
    """
    tail = (1 - level) / 2
    at_least, more = _beta(share, spread), _beta(share + heaviest, spread + heaviest**2)

    def below(rate: float) -> float:
        return 1 - (at_least(rate) + more(rate)) / 2

    def above_or_at(rate: float) -> float:
        return 1 - at_least(rate)

    def above(rate: float) -> float:
        return 1 - more(rate)

    low = 0.0 if share <= 0 else _crossing(below if mid else above_or_at, 1 - tail)
    high = 1.0 if share >= 1 else _crossing(below if mid else above, tail)
    return low, high


def _beta(share: float, spread: float) -> Callable[[float], float]:
    """The distribution function of ``B(x, n − x + 1)`` with ``x = share²/spread`` and ``n = share/spread``."""
    if share <= 0:
        return lambda rate: 1.0
    x, n = share * share / spread, share / spread
    if n - x + 1 <= ROUNDING:
        return lambda rate: 0.0
    return lambda rate: float(special.betainc(x, n - x + 1, rate))


def _binomial(failures: int, n: int, tail: float, mid: bool) -> tuple[float, float]:
    return weighted_counts(failures / n, failures / n**2, 1 / n, 1 - 2 * tail, mid)


def _crossing(decreasing: Callable[[float], float], value: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if decreasing(middle) > value else (low, middle)
    return (low + high) / 2


def _hypergeometric(failures: int, n: int, size: int, tail: float, mid: bool) -> tuple[float, float]:
    """Bounds on the number of failures in the frame, by bisection on whole numbers."""
    counts = np.arange(n + 1, dtype=np.float64)
    half = 0.5 if mid else 0.0

    def probabilities(total: int) -> NDArray[np.float64]:
        possible = (counts <= total) & (n - counts <= size - total)
        k = np.where(possible, counts, max(0, n - (size - total)))
        log = _log_choose(total, k) + _log_choose(size - total, n - k) - _log_choose(size, np.float64(n))
        return np.where(possible, np.exp(log), 0.0)

    def at_most(total: int) -> float:
        p = probabilities(total)
        return float(p[: failures + 1].sum() - half * p[failures])

    def at_least(total: int) -> float:
        p = probabilities(total)
        return float(p[failures:].sum() - half * p[failures])

    fewest, most = failures, size - (n - failures)
    high = _last(lambda total: at_most(total) > tail, fewest, most)
    low = fewest + most - _last(lambda total: at_least(fewest + most - total) > tail, fewest, most)
    return low / size, high / size


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last whole number in low..high for which ``holds`` is true, where it is true first and then false."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _log_choose(n: float, k: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))
