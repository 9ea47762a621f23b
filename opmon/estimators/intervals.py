"""Two-sided intervals for the mean outcome of a frame, one function per kind of design.

All bounds are for the mean outcome θ (failure rate, or mean squared error); an estimator that reports accuracy uses
``1 − high .. 1 − low``. Outcomes that are all 0 or 1 are treated as proportions, anything else as unbounded losses.

===================  ==================================================================================================
:func:`wilson`       simple random sampling, a proportion; fractional ``n``; finite-population correction
:func:`clopper_pearson`  the same, exact: coverage never below the level
:func:`stratified`   independent strata (or cells) with known shares; proportions and unbounded losses
:func:`weighted`     draws with unequal probabilities (SUPS, RHC-S, 2-UPS, DeepEST)
:func:`losses`       a weighted sum of means of unbounded losses, corrected for skewness
===================  ==================================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from opmon.errors import InputError
from opmon.estimators.skewed_score_core import cautious, skewed_score_bounds
from opmon.types import Floats

BULK = "wide because hardly a draw fell into a large part of the frame: what it may hide cannot be excluded"


class Interval(NamedTuple):
    """Bounds of the mean outcome; ``notes`` say what a reader must know, for instance why it is wide."""

    low: float
    high: float
    notes: tuple[str, ...] = ()


class WeightProfile(NamedTuple):
    """How the weights of the whole frame are distributed: what a weighted draw may have missed.

    Class ``c`` holds the inputs with weight in ``[edges[c], edges[c + 1])``; ``shares[c]`` is their share of the frame.
    """

    edges: Floats
    shares: Floats


def is_proportion(outcomes: Floats) -> bool:
    """Whether all outcomes are 0 or 1."""
    return bool(((outcomes == 0) | (outcomes == 1)).all())


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


def clopper_pearson(failures: float, n: float, level: float = 0.95) -> Interval:
    """The exact interval for ``failures`` out of ``n`` independent draws; fractional counts are allowed.

    >>> low, high, _ = clopper_pearson(0, 50)
    >>> low, round(high, 4)
    (0.0, 0.0711)
    """
    _require_level(level)
    if n == 0:
        return Interval(0.0, 1.0, ("no outcome is known",))
    alpha = (1 - level) / 2
    low = float(betaincinv(failures, n - failures + 1, alpha)) if failures > 0 else 0.0
    high = float(betaincinv(failures + 1, n - failures, 1 - alpha)) if failures < n else 1.0
    return Interval(low, high)


def stratified(
    shares: Floats,
    counts: Floats,
    means: Floats,
    level: float = 0.95,
    *,
    sizes: Floats | None = None,
    variances: Floats | None = None,
) -> Interval:
    """Interval for ``Σ W_h θ_h`` from independent strata.

    ``shares`` W_h, ``counts`` n_h, ``means`` ȳ_h; ``sizes`` N_h where the draws are without replacement inside a
    stratum. Without ``variances`` the outcomes are proportions (score interval of :mod:`intervals_core`); with them
    they are unbounded losses with these sample variances.
    """
    _require_level(level)
    counts = np.asarray(counts, dtype=np.float64)
    effective = counts
    if sizes is not None:
        census = np.asarray(sizes) <= counts
        room = np.where(census, 1.0, np.asarray(sizes) - counts)
        effective = np.where(census, 1e15, counts * np.maximum(np.asarray(sizes) - 1, 1) / room)
    if variances is None:
        failures = effective * np.where(counts > 0, means, 0.0)
        return Interval(*skewed_score_bounds(shares, effective, failures, level, cautious(level)))
    return losses(shares, effective, means, variances, level)


def losses(
    shares: Floats,
    counts: Floats,
    means: Floats,
    variances: Floats,
    level: float = 0.95,
    third_moments: Floats | None = None,
) -> Interval:
    """Interval for ``Σ W_h μ_h`` of unbounded losses: Hall's transformation of the t statistic.

    With ``σ̂² = Σ W_h² s_h²/n_h`` and skewness ``γ = Σ W_h³ m3_h/n_h² / σ̂³`` the statistic
    ``T + γT²/3 + γ²T³/27 + γ/6`` is nearly normal; Satterthwaite's degrees of freedom. Hall (JRSS B 54, 1992).
    """
    _require_level(level)
    used = np.asarray(counts) > 0
    W, n, mean, s2 = (np.asarray(v, dtype=np.float64)[used] for v in (shares, counts, means, variances))
    if not len(W):
        return Interval(0.0, np.inf, ("no outcome is known",))
    estimate, parts = float(W @ mean), W * W * s2 / n
    sigma = float(np.sqrt(parts.sum()))
    if sigma == 0:
        return Interval(estimate, estimate)
    freedom = float(parts.sum() ** 2 / (parts**2 / np.maximum(n - 1, 1)).sum())
    t = float(stdtrit(max(freedom, 1.0), 0.5 + level / 2))
    moments = np.zeros_like(n) if third_moments is None else np.asarray(third_moments, dtype=np.float64)[used]
    gamma = float((W**3 * moments / n**2).sum() / sigma**3)
    low = estimate - sigma * _inverse_hall(t, gamma)
    return Interval(max(low, 0.0), estimate - sigma * _inverse_hall(-t, gamma))


def weighted(
    outcomes: Floats, weights: Floats, level: float = 0.95, *, profile: WeightProfile | None = None
) -> Interval:
    """Interval for θ from draws with unequal probabilities; ``weights[k] = 1/(N p_k)``, mean 1 under the design.

    Proportions: the draws are post-stratified in classes of like weight; class ``c`` stands for the share ``W_c`` of
    the frame (``profile``; without it the weights estimate the share) and holds ``x_c`` failures in ``n_c``
    draws, all weighted inside the class. Score interval over the classes: the lightly sampled bulk, where no
    failure was seen, widens the bound by what it could hide. Unbounded losses: Hall's interval of ``w_k y_k``.
    """
    _require_level(level)
    outcomes, weights = np.asarray(outcomes, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if len(outcomes) == 0:
        return Interval(0.0, 1.0, ("no outcome is known",))
    if not is_proportion(outcomes):
        return _weighted_losses(outcomes, weights, level)
    profile = profile if profile is not None else _observed_profile(weights)
    which = np.clip(np.searchsorted(profile.edges, weights, side="right") - 1, 0, len(profile.shares) - 1)
    classes = len(profile.shares)
    total = np.bincount(which, weights, classes)
    squares = np.bincount(which, weights**2, classes)
    n = np.divide(total**2, squares, out=np.zeros(classes), where=squares > 0)
    rate = np.divide(np.bincount(which, weights * outcomes, classes), total, out=np.zeros(classes), where=total > 0)
    low, high = skewed_score_bounds(profile.shares, n, n * rate, level, cautious(level))
    return Interval(low, high, (BULK,) if profile.shares[n < 1].sum() > 0.1 else ())


def weight_profile(weights: Floats, classes: int = 8) -> WeightProfile:
    """The profile of the weights ``1/(N p_i)`` of all inputs: classes that expect equally many draws."""
    weights = np.asarray(weights)
    logs = np.log2(weights)
    codes = np.clip(((logs - logs.min()) * 16).astype(np.int64), 0, 4095)
    counts = np.bincount(codes)
    expected = np.bincount(codes, 1.0 / weights)
    cumulative = np.cumsum(expected) / expected.sum()
    first = np.unique(np.searchsorted(cumulative, np.arange(1, classes) / classes) + 1)
    first = np.concatenate([[0], first[first < len(counts)]])
    shares = np.add.reduceat(counts, first) / len(weights)
    edges = np.append(2.0 ** (logs.min() + first / 16), np.inf)
    edges[0] = 0.0
    return WeightProfile(edges, shares)


def _observed_profile(weights: Floats) -> WeightProfile:
    order = np.sort(weights)
    cuts = np.unique(order[:: max(len(order) // 6, 1)])
    edges = np.concatenate([[0.0], cuts[1:], [np.inf]])
    which = np.searchsorted(edges, weights, side="right") - 1
    shares = np.bincount(which, weights, len(edges) - 1)
    return WeightProfile(edges, shares / shares.sum())


def _weighted_losses(outcomes: Floats, weights: Floats, level: float) -> Interval:
    terms, one = weights * outcomes, np.ones(1)
    centred = terms - terms.mean()
    n = len(terms)
    if n < 2:
        return Interval(0.0, np.inf, ("one outcome gives no variance",))
    return losses(one, n * one, terms.mean() * one, terms.var(ddof=1) * one, level, (centred**3).mean() * one)


def _inverse_hall(x: float, gamma: float) -> float:
    if abs(gamma) < 1e-8:
        return x
    return float(3 / gamma * (np.cbrt(1 + gamma * (x - gamma / 6)) - 1))


def _require_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {level}; 0.95 is usual")
