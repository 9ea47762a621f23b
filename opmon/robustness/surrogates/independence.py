"""Perturbations that do not know of each other: the product of what each of them leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from opmon.errors import InputError
from opmon.robustness.space import Tests
from opmon.robustness.surrogates.known import FLOOR, Known
from opmon.types import Floats


def independence(known: Known, tests: Tests) -> Floats:
    """r_σ = r_0·Π_j (r_j / r_0), r_j the share under perturbation j alone.

    Fails where perturbations act on the same inputs (then it is too low) or on what the other left (too high):
    :func:`independence_test` tells. Reference: TestifAI, section 4.2.
    """
    share = np.maximum(known.measured.share, FLOOR)
    base = share[known.row(())]
    return np.array([base * np.prod(share[singles] / base) for singles, _ in known.parts(tests)])


@dataclass(frozen=True, slots=True)
class IndependenceTest:
    """``p_value`` small: the perturbations are not independent. ``sizes_suffice`` false: there are too few inputs for
    the normal approximation under it."""

    statistic: float
    degrees: int
    p_value: float
    sizes_suffice: bool


def independence_test(known: Known) -> IndependenceTest:
    """χ² of the measured pairs against the product of their singles, Σ (r_ij − r_i·r_j/r_0)² / v_ij.

    The product is itself estimated (Proposition 1 of TestifAI leaves that out), so its variance belongs into v_ij. With
    outcomes z on the same inputs, the linearised difference of input i is d = c·z = z_ij − (r_j z_i + r_i z_j)/r_0 +
    r_i r_j z_0 / r_0², and v_ij = c·K c/N + Σ c² se², K the covariance of the tests' outcomes over inputs and se the
    error from looking at a part of them: the covariances come with it. Where pairs share inputs the terms are
    dependent, and the statistic is compared with Satterthwaite's scaled χ², whose scale and degrees are those of the
    covariance matrix of the terms.

    The normal approximation of each mean is within 0.05 of the truth where Berry and Esseen's bound 0.4748·ρ/(s³√n) is
    (Shevtsova, 2011), ρ the third absolute moment of d; ``sizes_suffice`` says whether that holds for the median pair.
    """
    measured, tests = known.measured, known.measured.tests
    pairs = np.flatnonzero(tests.order == 2)
    if not len(pairs):
        raise InputError("independence is tested on pairs; the space has one perturbation, or no pair was run")
    inputs = measured.right.shape[1]
    weights = np.ones(inputs) if measured.weights is None else measured.weights / measured.weights.mean()
    n = weights.sum() ** 2 / (weights**2).sum()
    share = np.maximum(measured.share, FLOOR)
    c = _differences(known, pairs, share)
    differences = share[pairs] - independence(known, tests.take(pairs))
    of_terms = c @ known.outcomes.covariance @ c.T / n + (c * measured.error**2) @ c.T
    spread = np.sqrt(np.maximum(np.diag(of_terms), 1e-12 / n))
    correlation = of_terms / np.outer(spread, spread)
    scale = float((correlation**2).sum() / len(pairs))  # Satterthwaite: a·χ²_b with the same mean and variance
    degrees = len(pairs) / scale
    statistic = float(((differences / spread) ** 2).sum())
    d = c @ (known.outcomes.values - known.outcomes.mean[:, None])
    seen = measured.seen[pairs]
    third = (np.abs(d) ** 3).mean(axis=1) / np.maximum(d.std(axis=1), 1e-6) ** 3
    esseen = 0.4748 * third / np.sqrt(seen)
    return IndependenceTest(
        statistic, len(pairs), float(chdtrc(degrees, statistic / scale)), bool(np.median(esseen) <= 0.05)
    )


def _differences(known: Known, pairs: NDArray[np.int64], share: Floats) -> Floats:
    """c of each pair, over the measured tests."""
    tests, base = known.measured.tests, known.row(())
    c = np.zeros((len(pairs), len(tests)))
    for place, ((singles, _), row) in enumerate(zip(known.parts(tests.take(pairs)), pairs.tolist(), strict=True)):
        i, j = singles
        c[place, row] += 1
        c[place, i] -= share[j] / share[base]
        c[place, j] -= share[i] / share[base]
        c[place, base] += share[i] * share[j] / share[base] ** 2
    return c
