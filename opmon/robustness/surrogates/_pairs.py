"""Shares of order ≤ 2 without their noise: what neighbouring severities say about each other.

On the logarithm, a share is a level, a main effect of each perturbation and an interaction of every two,

    log r_σ = c + Σ_j a_j(s_j) + Σ_{i<j} a_ij(s_i, s_j) + ε_σ,

smooth over severities and zero at severity 0: a Gaussian process with the covariance

    c² + a² Σ_j k_0 + b² Σ_{i<j} k_0 k_0 + ρ² [σ = σ'],        k_0 Matérn 3/2 given zero at 0,

observed with the errors of the measurements. b, the reach of k_0 and ρ by marginal likelihood on a grid. The
posterior covariance says what is still not known, and with it how far a superposition of pairs may be off.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from opmon.robustness.space import Tests
from opmon.types import Floats

_LEVEL, _MAIN = 1.0, 0.5
_MOST_ROOTS = 48
"""Directions of error that are kept, the largest: there may be a million tests to carry them over to."""
_PAIRS, _REACHES, _ROUGH = (0.01, 0.03, 0.1, 0.3, 1.0), (0.5, 1.0, 2.0), (0.001, 0.004, 0.015)


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Logarithms of shares; ``root`` times its transpose is the covariance of their errors, but for its
    smallest parts."""

    log: Floats
    root: Floats


def smoothed(tests: Tests, log: Floats, noise: Floats, levels: int) -> Smoothed:
    """``log``, the covariance of its errors being ``noise``, of tests of order ≤ 2."""
    centre = float(np.average(log))
    values = log - centre
    best: tuple[float, Floats, Floats] | None = None
    for reach in _REACHES:
        main, pair = _parts(tests, levels, reach)
        for size, rough in itertools.product(_PAIRS, _ROUGH):
            signal = _LEVEL**2 + _MAIN**2 * main + size**2 * pair
            signal[np.diag_indices_from(signal)] += rough**2
            gram = signal + noise
            factor = cho_factor(gram, lower=True)
            evidence = float(-0.5 * values @ cho_solve(factor, values) - np.log(np.diag(factor[0])).sum())
            if best is None or evidence > best[0]:
                best = evidence, signal, gram
    assert best is not None
    _, signal, gram = best
    gain = np.linalg.solve(gram, signal).T
    left = signal - gain @ signal
    sizes, vectors = np.linalg.eigh((left + left.T) / 2)
    sizes, vectors = sizes[-_MOST_ROOTS:], vectors[:, -_MOST_ROOTS:]
    return Smoothed(centre + gain @ values, vectors * np.sqrt(np.maximum(sizes, 0)))


def vanishing(levels: int, reach: float) -> Floats:
    """Matérn 3/2 over severities given zero at zero, 1 at the highest severity."""
    place = np.arange(levels + 1) / levels
    apart = np.abs(place[:, None] - place[None]) * np.sqrt(3) / reach
    kernel = (1 + apart) * np.exp(-apart)
    kernel = kernel - np.outer(kernel[:, 0], kernel[0])
    return np.asarray(kernel / kernel[-1, -1])


def _parts(tests: Tests, levels: int, reach: float) -> tuple[Floats, Floats]:
    """Covariances of the main effects, and of the interactions; A∘B has other ones than B∘A."""
    one, s = vanishing(levels, reach), tests.severities
    total, squares = np.zeros((len(s), len(s))), np.zeros((len(s), len(s)))
    for j in range(s.shape[1]):
        factor = one[np.ix_(s[:, j], s[:, j])]
        total += factor
        squares += factor**2
    pair = (total**2 - squares) / 2
    # two tests of one pair in two orders have the same severities' places and other ranks
    turned = np.zeros(pair.shape, np.int8)
    for applied, rank in zip(s.T > 0, tests.ranks.T, strict=True):
        turned += (applied[:, None] & applied[None]) & (rank[:, None] != rank[None])
    return total, np.where(turned > 1, 0.0, pair)
