"""A Gaussian process of third and higher interactions, zero wherever a severity is zero."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from opmon.robustness.space import Tests
from opmon.robustness.surrogates._pairs import vanishing
from opmon.types import Array, Floats, Numbers

Rows = NDArray[np.int64]
_AT_ONCE, _MOST_CANDIDATES = 20_000, 1500
_MOST = 6
"""Interactions are told apart up to this many perturbations' triples; beyond, all of a test's severities are one."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Hyper-parameters: sizes of interactions of the third and of higher orders, the reach over severities (1 = the
    whole range), how far the blend of features may go, and what is not explained by any of it."""

    third: float = 0.04
    reach: float = 0.5
    blend: float = 0.2
    rough: float = 0.005


GRID = tuple(
    Scales(third, reach, blend, rough)
    for third in (0.01, 0.02, 0.04, 0.08, 0.16)
    for reach in (0.5, 1.0, 2.0)
    for blend in (0.1, 0.3, 0.6)
    for rough in (0.002, 0.005, 0.01)
)


@dataclass(frozen=True, eq=False)
class Interactions:
    """The covariance of the residuals of all tests of order ≥ 3 from what is expected of them.

    ``K(σ, σ') = b² f(σ)·f(σ') + e(σ)·e(σ') + a² Σ_T Π_{j∈T} k_0(s_j, s'_j) [+ (0.7a)² Π over four]``: a linear blend of
    the features f, how far other opinions are from what is expected; the error e of the expectation itself;
    interactions of every triple T of perturbations, and (four perturbations or more) of every quadruple. k_0 is Matérn
    3/2 given that it is zero at severity 0, where the residual is known to be zero.
    """

    tests: Tests
    features: Floats
    levels: int
    errors: Numbers

    def covariance(self, scales: Scales, left: Rows, right: Rows) -> Floats:
        """Between the tests in the rows ``left`` and those in ``right``."""
        one, s = vanishing(self.levels, scales.reach), self.tests.severities
        factors = [one[np.ix_(s[left, j], s[right, j])] for j in range(s.shape[1])]
        orders = self.tests.order
        blend = scales.blend**2 * self.features[left] @ self.features[right].T
        blend += self.errors[left] @ self.errors[right].T
        return self._combined(scales, factors, blend, np.sqrt(np.outer(orders[left], orders[right])))

    def variance(self, scales: Scales) -> Floats:
        """The variance of every test."""
        one, s = vanishing(self.levels, scales.reach), self.tests.severities
        factors = [one[s[:, j], s[:, j]] for j in range(s.shape[1])]
        blend = scales.blend**2 * (self.features**2).sum(axis=1) + (self.errors**2).sum(axis=1)
        return self._combined(scales, factors, blend, self.tests.order)

    def _combined(self, scales: Scales, factors: list[Floats], blend: Floats, orders: Array) -> Floats:
        total = blend.copy()
        if len(factors) > _MOST:
            return np.asarray(total + scales.third**2 * (sum(factors) / orders) ** 3)
        for triple in itertools.combinations(factors, 3):
            total += scales.third**2 * triple[0] * triple[1] * triple[2]
        for four in itertools.combinations(factors, 4):
            total += (0.7 * scales.third) ** 2 * four[0] * four[1] * four[2] * four[3]
        return np.asarray(total)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Mean and variance of all residuals given some. ``covariance`` is that of the ``candidates``, tests that were not
    measured (at most 1,500 of them); ``stretch`` is how much wider than stated the left-out residuals were."""

    mean: Floats
    variance: Floats
    candidates: Rows
    covariance: Floats
    scales: Scales
    stretch: float


def fit(process: Interactions, rows: list[int], values: Floats, noise: Floats, level: float) -> Fitted:
    """Given the residuals ``values`` of the tests in ``rows``, the covariance of their errors being ``noise``.

    Hyper-parameters by marginal likelihood on a grid, with a weak prior. The stretch makes the level-quantile of the
    residuals left out one by one equal to the normal one, so that intervals cover what they say.
    """
    measured, candidates = np.array(rows, np.int64), _candidates(len(process.tests), rows)
    if not rows:
        scales = Scales()
        covariance = process.covariance(scales, candidates, candidates)
        return Fitted(np.zeros(len(process.tests)), process.variance(scales), candidates, covariance, scales, 1.0)
    scales, gram = _likeliest(process, measured, values, noise)
    inverse = np.linalg.inv(gram)
    left_out = (inverse @ values) / np.sqrt(np.diag(inverse))
    mean, variance = np.empty(len(process.tests)), process.variance(scales)
    for start in range(0, len(mean), _AT_ONCE):
        part = np.arange(start, min(start + _AT_ONCE, len(mean)))
        across = process.covariance(scales, part, measured)
        mean[part] = across @ (inverse @ values)
        variance[part] -= np.einsum("ij,jk,ik->i", across, inverse, across, optimize=True)
    across = process.covariance(scales, candidates, measured)
    covariance = process.covariance(scales, candidates, candidates) - across @ inverse @ across.T
    covariance[np.diag_indices_from(covariance)] += scales.rough**2
    variance = np.maximum(variance, 0) + scales.rough**2
    return Fitted(mean, variance, candidates, covariance, scales, _stretch(left_out, level))


def _likeliest(process: Interactions, rows: Rows, values: Floats, noise: Floats) -> tuple[Scales, Floats]:
    """The hyper-parameters of the grid with the highest evidence, and the covariance of the measured residuals."""
    best: tuple[float, Scales, Floats] | None = None
    kept: dict[tuple[float, float, float], Floats] = {}
    for scales in GRID:
        key = (scales.third, scales.reach, scales.blend)
        if key not in kept:
            kept[key] = process.covariance(scales, rows, rows)
        gram = kept[key] + noise + np.diag(np.full(len(noise), scales.rough**2))
        factor = cho_factor(gram, lower=True)
        evidence = -0.5 * values @ cho_solve(factor, values) - np.log(np.diag(factor[0])).sum() + _prior(scales)
        if best is None or evidence > best[0]:
            best = (float(evidence), scales, gram)
    assert best is not None
    return best[1], best[2]


def _candidates(count: int, rows: list[int]) -> Rows:
    """The tests that were not measured; of very many, some, always the same ones."""
    open_ = np.setdiff1d(np.arange(count), np.array(rows, np.int64))
    if len(open_) <= _MOST_CANDIDATES:
        return open_
    ranks = np.random.default_rng(0).permutation(count)
    return np.sort(open_[np.argsort(ranks[open_])[:_MOST_CANDIDATES]])


def choose(fitted: Fitted, count: int, noise: float) -> list[int]:
    """The tests whose results would make all the others most certain, one after the other.

    Each reduces Σ_j var_j by Σ_j K_ij² / (K_ii + noise²) (active learning, Cohn, 1996).
    """
    left = fitted.covariance.copy()
    chosen: list[int] = []
    for _ in range(min(count, len(left))):
        diagonal = np.diag(left) + noise**2
        gain = (left**2).sum(axis=0) / diagonal
        gain[chosen] = -1
        best = int(np.argmax(gain))
        chosen.append(best)
        left -= np.outer(left[:, best], left[:, best]) / diagonal[best]
    return list(fitted.candidates[chosen].tolist())


def _prior(scales: Scales) -> float:
    return float(
        -0.5 * np.log(scales.third / 0.04) ** 2
        - 0.5 * np.log(scales.blend / 0.3) ** 2
        - 0.5 * np.log(scales.rough / 0.005) ** 2
    )


def _stretch(left_out: NDArray[np.float64], level: float) -> float:
    from scipy.special import ndtri

    n = len(left_out)
    rank = min(n, int(np.ceil((n + 1) * level)))
    stretch = np.sort(np.abs(left_out))[rank - 1] / ndtri(0.5 + level / 2)
    trust = n / (n + 10)  # few residuals say little
    return float(np.clip(stretch, 1, 3) ** trust)
