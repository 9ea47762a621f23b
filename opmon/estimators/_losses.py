"""Intervals of means of unbounded, skewed losses, such as squared errors.

Student's t covers 78 to 95 % on samples of 50 skewed losses. Two corrections bring that to 93 to 96 %: Hall's cubic
transformation takes the skewness of the estimate out (J. R. Stat. Soc. B 54, 1992), and the degrees of freedom take the
kurtosis ``κ`` into account, because the variance of a long-tailed loss is itself badly known: ``Var(s²)/σ⁴ = (κ − (n −
3)/(n − 1))/n`` and ``ν = 2 σ⁴ / Var(s²)``, which is ``n − 1`` for normal losses (Box, Ann. Math. Stat. 25, 1954).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from opmon.estimators._weighted_score import score_bounds

Interval = tuple[float, float, tuple[str, ...]]
UNBOUNDED = "one answer says nothing about the spread: the interval has no end on the side of larger losses"
EQUAL = "all answers are equal: they tell nothing of rarer, larger losses, and the interval has no end on their side"
THIN = (
    "few draws fall on the inputs that the variable trusts; their mean loss is only taken to be no larger than the "
    "largest loss seen"
)
BORROWED = 7.0
"""The number of losses with the moments of a squared normal error that are joined to those seen, for the upper bound.

A small sample of skewed losses seldom shows how far they reach: it then has a small mean, a small variance *and* a
small skewness. Without the loan the coverage was 0.84 to 0.94 at n = 10, 0.90 to 0.95 at 20 and 0.91 to 0.95 at 30
(log-normal losses of shape 0.5 to 1.5, squares of normal and t5 errors), nearly all misses where the model is worse
than the interval says; with it 0.97 to 1.0, 0.95 to 0.99 and 0.93 to 0.98, for 1.2 times the width at 30, 1.05 at 50.
"""
RELATIVE, NORMAL_SKEW, NORMAL_KURTOSIS = 2.0, 8**0.5, 15.0
"""Moments of the square of a normal error: variance by squared mean, skewness, kurtosis."""
ROUNDING = 1e-12
"""A spread below this share of the mean is that of rounding."""
FEW = 5.0
"""Fewer effective draws than this say nothing about the spread in their class."""


def hall(estimate: float, error: float, skewness: float, freedom: float, level: float) -> Interval:
    """The interval around ``estimate`` with standard error ``error``; ``skewness`` is that of the estimate itself."""
    if error == 0:
        return estimate, estimate, ()
    t = float(stdtrit(max(freedom, 1.5), 0.5 + level / 2))
    return estimate - error * _inverse(t, skewness), estimate - error * _inverse(-t, skewness), ()


def freedom_of(terms: NDArray[np.float64]) -> float:
    """``ν = 2n / (κ − (n − 3)/(n − 1))`` of ``n`` terms with kurtosis ``κ``, at most ``n − 1``."""
    n = len(terms)
    square = float(((terms - terms.mean()) ** 2).mean())
    if n < 2 or square == 0:
        return 1.0
    kurtosis = float(((terms - terms.mean()) ** 4).mean()) / square**2
    return min(2 * n / max(kurtosis - (n - 3) / (n - 1), 1e-9), n - 1.0)


def _inverse(x: float, skewness: float) -> float:
    if abs(skewness) < 1e-8:
        return x
    return float(3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1))


def mean_of(terms: NDArray[np.float64], level: float, left: float = 1.0) -> Interval:
    """The interval of a plain mean; ``left`` multiplies the variance (finite population)."""
    one = np.ones(1)
    return sum_of(one, np.array([float(len(terms))]), moments_of(terms), one * left, level)


Moments = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Per stratum: mean, variance, third and fourth central moment."""


def moments_of(terms: NDArray[np.float64]) -> Moments:
    """The moments of all terms as one stratum."""
    deviation = terms - terms.mean()
    variance = float((deviation**2).sum()) / max(len(terms) - 1, 1)
    third, fourth = (np.array([float((deviation**power).mean())]) for power in (3, 4))
    return np.array([float(terms.mean())]), np.array([variance]), third, fourth


def sum_of(
    shares: NDArray[np.float64], n: NDArray[np.float64], moments: Moments, left: NDArray[np.float64], level: float
) -> Interval:
    """The interval of ``Σ W_h μ_h`` from ``n_h`` draws each; ``left`` is ``1 − f_h``, 0 for a stratum drawn whole."""
    mean, variance, third, fourth = moments
    parts = shares**2 * variance * left / n
    total, estimate = float(parts.sum()), float(shares @ mean)
    if n.sum() < 2 and left.max() > 0:
        return 0.0, math.inf, (UNBOUNDED,)
    if total <= (ROUNDING * estimate) ** 2:
        return _of_equal(shares, n, mean, left, level)
    skewness = float((shares**3 * third * left**1.5 / n**2).sum()) / total**1.5
    kurtosis = np.divide(fourth, variance**2, out=np.full(len(n), 3.0), where=variance > 0)
    seen = hall(estimate, math.sqrt(total), skewness, _freedom(parts, kurtosis, n), level)
    unit = shares**2 * left / n
    heard = float(n.sum())
    few = BORROWED / (heard + BORROWED)
    likely = (1 - few) * total + few * RELATIVE * estimate**2 * float(unit.sum())
    tail = NORMAL_SKEW * float((shares**3 * left**1.5 / n**2).sum()) / float(unit.sum()) ** 1.5
    skewer = (1 - few) * skewness + few * tail
    wider = _freedom(parts, (1 - few) * kurtosis + few * NORMAL_KURTOSIS, n)
    feared = hall(estimate, math.sqrt(max(total, likely)), max(skewness, skewer), wider, level)
    return seen[0], max(seen[1], feared[1]), ()


def _freedom(parts: NDArray[np.float64], kurtosis: NDArray[np.float64], n: NDArray[np.float64]) -> float:
    """The degrees of freedom of the variance ``Σ parts`` (Welch and Satterthwaite, with Box's for each)."""
    spread = np.maximum(kurtosis - (n - 3) / np.maximum(n - 1, 1), 1e-9) / n
    freedom = 2 * float(parts.sum()) ** 2 / float((parts**2 * spread).sum() + 1e-300)
    return min(freedom, float(n.sum()) - 1)


def _of_equal(
    shares: NDArray[np.float64],
    n: NDArray[np.float64],
    mean: NDArray[np.float64],
    left: NDArray[np.float64],
    level: float,
) -> Interval:
    """The interval of losses that are all equal in every stratum; exact where nothing is left to draw.

    How much larger the losses can be that were not drawn, nobody knows. But few of them can be smaller: the mean of a
    stratum is at least ``mean_h p_h``, ``p_h`` the share of losses no smaller than those seen, with its score interval.
    """
    estimate, some = float(shares @ mean), (left > 0) & (shares > 0)
    if not some.any():
        return estimate, estimate, ()
    m = n[some] / left[some]
    least, _ = score_bounds((shares * mean)[some], m, m, level)
    return float((shares * mean)[~some].sum()) + least, math.inf, (EQUAL,)


def classes_of(
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    stratum: NDArray[np.int64],
    sizes: NDArray[np.int64],
    level: float,
    left: float = 1.0,
) -> Interval:
    """The interval of a mean loss from weighted draws, class by class; for designs that hardly see some classes.

    Classes with ``FEW`` effective draws or more get Hall's interval. The others may hold anything up to the largest
    loss seen: for them a score interval of the loss relative to it. Both parts are added as independent ones (Zou and
    Donner, Statistics in Medicine 27, 2008). ``left`` multiplies the variance (finite population).
    """
    count = len(sizes)
    share = sizes / sizes.sum()
    sums = np.bincount(stratum, weights=weight, minlength=count)
    m = np.divide(
        sums**2, np.bincount(stratum, weights=weight**2, minlength=count), out=np.zeros(count), where=sums > 0
    )
    scale = np.where(sums > 0, sums, 1.0)
    mean = np.bincount(stratum, weights=weight * y, minlength=count) / scale
    deviation = y - mean[stratum]
    square = deviation * deviation
    powers = (square, square * deviation, square * square)
    central = [np.bincount(stratum, weights=weight * power, minlength=count) / scale for power in powers]
    thick = m >= FEW
    least, most = 0.0, 0.0
    notes: tuple[str, ...] = ()
    centre = float(share[thick] @ mean[thick])
    if thick.any():
        variance = central[0] * m / np.maximum(m - 1, 1)
        inside = (mean[thick], variance[thick], central[1][thick], central[2][thick])
        least, most, notes = sum_of(share[thick], m[thick], inside, np.full(int(thick.sum()), left), level)
    top = float(y.max()) or 1.0
    worth = m[~thick] / max(left, 1e-12)
    low, high = score_bounds(share[~thick], worth, worth * mean[~thick] / top, level)
    thin = float((share * np.where(m > 0, mean, float(weight @ y) / weight.sum()))[~thick].sum())
    thin = min(max(thin, low * top), high * top)
    below = math.hypot(centre - least, thin - low * top)
    above = math.hypot(most - centre, high * top - thin)
    return max(centre + thin - below, 0.0), centre + thin + above, (*notes, THIN)
