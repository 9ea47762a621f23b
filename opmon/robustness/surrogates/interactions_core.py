"""A Gaussian process of third and higher interactions, zero wherever a severity is zero."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from opmon.robustness.space import Tests

Floats = NDArray[np.float64]
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
    """The covariance of the residuals of all tests of order ≥ 3 from the mean of their features.

    ``K(σ, σ') = b² (f − m)(σ)·(f − m)(σ') + a² Σ_T Π_{j∈T} k_0(s_j, s'_j) [+ (0.7a)² Π over four]``: a linear blend of
    the features f, interactions of every triple T of perturbations, and (four perturbations or more) of every
    quadruple. k_0 is Matérn 3/2 given that it is zero at severity 0, where the residual is known to be zero.
    """

    tests: Tests
    features: Floats
    levels: int

    def covariance(self, scales: Scales) -> Floats:
        one = _vanishing(self.levels, scales.reach)
        s = self.tests.severities
        k = s.shape[1]
        factors = [one[np.ix_(s[:, j], s[:, j])] for j in range(k)]
        spread = self.features - self.features.mean(axis=1, keepdims=True)
        total = scales.blend**2 * (spread @ spread.T)
        if k > _MOST:
            alike = sum(factors) / np.sqrt(np.outer(self.tests.order, self.tests.order))
            return np.asarray(total + scales.third**2 * np.maximum(alike, 0) ** 3)
        for triple in itertools.combinations(factors, 3):
            total += scales.third**2 * triple[0] * triple[1] * triple[2]
        for four in itertools.combinations(factors, 4):
            total += (0.7 * scales.third) ** 2 * four[0] * four[1] * four[2] * four[3]
        return np.asarray(total)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Mean and covariance of all residuals given some; ``stretch`` is how much wider than stated the left-out residuals
    were."""

    mean: Floats
    covariance: Floats
    scales: Scales
    stretch: float


def fit(process: Interactions, rows: list[int], values: Floats, noise: Floats, level: float) -> Fitted:
    """Given the residuals ``values`` (standard errors ``noise``) of the tests in ``rows``.

    Hyper-parameters by marginal likelihood on a grid, with a weak prior. The stretch makes the level-quantile of the
    residuals left out one by one equal to the normal one, so that intervals cover what they say.
    """
    if not rows:
        covariance = process.covariance(Scales())
        return Fitted(np.zeros(len(covariance)), covariance, Scales(), 1.0)
    best: tuple[float, Scales, Floats] | None = None
    kept: dict[tuple[float, float, float], Floats] = {}
    index = np.ix_(rows, rows)
    small = Interactions(process.tests.take(rows), process.features[rows], process.levels)
    for scales in GRID:
        key = (scales.third, scales.reach, scales.blend)
        if key not in kept:
            kept[key] = small.covariance(scales)
        gram = kept[key] + np.diag(noise**2 + scales.rough**2)
        factor = cho_factor(gram, lower=True)
        solved = cho_solve(factor, values)
        evidence = -0.5 * values @ solved - np.log(np.diag(factor[0])).sum() + _prior(scales)
        if best is None or evidence > best[0]:
            best = (float(evidence), scales, gram)
    assert best is not None
    _, scales, gram = best
    covariance = process.covariance(scales)
    inverse = np.linalg.inv(gram)
    across = covariance[:, rows]
    mean = across @ (inverse @ values)
    left_out = (inverse @ values) / np.diag(inverse) * np.sqrt(np.diag(inverse))
    covariance = covariance - across @ inverse @ across.T
    covariance[np.diag_indices_from(covariance)] += scales.rough**2
    covariance[index] = (covariance[index] + covariance[index].T) / 2
    return Fitted(mean, covariance, scales, _stretch(left_out, level))


def choose(covariance: Floats, known: list[int], count: int, noise: float) -> tuple[list[int], float]:
    """The tests whose results would make all the others most certain, one after the other, and by how much in all.

    Each reduces Σ_j var_j by Σ_j K_ij² / (K_ii + noise²) (active learning, Cohn, 1996).
    """
    left = covariance.copy()
    chosen: list[int] = []
    gained = 0.0
    for _ in range(min(count, len(left) - len(known))):
        diagonal = np.diag(left) + noise**2
        gain = (left**2).sum(axis=0) / diagonal
        gain[known + chosen] = -1
        best = int(np.argmax(gain))
        chosen.append(best)
        gained += float(gain[best])
        left = left - np.outer(left[:, best], left[:, best]) / diagonal[best]
    return chosen, gained


def _vanishing(levels: int, reach: float) -> Floats:
    """Matérn 3/2 over severities given zero at zero, 1 at the highest severity."""
    place = np.arange(levels + 1) / levels
    apart = np.abs(place[:, None] - place[None]) * np.sqrt(3) / reach
    kernel = (1 + apart) * np.exp(-apart)
    kernel = kernel - np.outer(kernel[:, 0], kernel[0])
    return np.asarray(kernel / kernel[-1, -1])


def _prior(scales: Scales) -> float:
    return float(
        -0.5 * np.log(scales.third / 0.04) ** 2
        - 0.5 * np.log(scales.blend / 0.3) ** 2
        - 0.5 * np.log(scales.rough / 0.005) ** 2
    )


def _stretch(left_out: NDArray[np.float64], level: float) -> float:
    from scipy.stats import norm

    n = len(left_out)
    rank = min(n, int(np.ceil((n + 1) * level)))
    found = np.sort(np.abs(left_out))[rank - 1] / norm.ppf(0.5 + level / 2)
    trust = n / (n + 10)  # few residuals say little
    return float(np.clip(found, 0.5, 3) ** trust)
