"""Kirkwood's superposition: singles and pairs, and nothing beyond."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.robustness.space import Tests
from opmon.robustness.surrogates._pairs import smoothed
from opmon.robustness.surrogates.known import FLOOR, Known
from opmon.types import Floats


def kirkwood(known: Known, tests: Tests, *, shrunk: bool = False) -> Floats:
    """log r_σ = log r_0 + Σ_j a_j + Σ_{i<j} a_ij with a_j = log r_j − log r_0 and
    a_ij = log r_ij − log r_0 − a_i − a_j.

    Exact at order ≤ 2. Beyond, it takes the third-order interaction for zero; with many pairs their errors add up.
    ``shrunk`` takes each a_ij times B, the share of its perturbations' interactions that is more than noise,
    B = max(0, 1 − mean se² / mean a²) over all severities of the two: without interactions it is independence.

    References: Kirkwood, Statistical mechanics of fluid mixtures, 1935; METHODS of TestifAI call it additive with
    pairs; Efron and Morris, Stein's estimation rule and its competitors, 1973.
    """
    log = np.log(np.clip(known.measured.share, FLOOR, 1))
    base = log[known.row(())]
    factor = _factors(known, log) if shrunk else {}
    values = []
    for position, (singles, pairs) in enumerate(known.parts(tests)):
        names = [number for number, _ in tests.steps(position)] if shrunk else []
        total = base + sum(log[row] - base for row in singles)
        for a, b, row in pairs:
            weight = factor[names[a], names[b]] if shrunk else 1.0
            total += weight * (log[row] - log[singles[a]] - log[singles[b]] + base)
        values.append(np.exp(total))
    return np.asarray(np.clip(np.array(values), 0, 1))


def superposed(known: Known, tests: Tests, levels: int) -> tuple[Floats, NDArray[np.float32]]:
    """Kirkwood's superposition of shares without their noise (:mod:`opmon.robustness.surrogates._pairs`), and the
    root E of the covariance E·Eᵀ of its errors from the noise that is left."""
    measured = known.measured
    low = np.flatnonzero(measured.tests.order <= 2)
    share = np.clip(measured.share[low], FLOOR, 1)
    noise = known.outcomes.noise[np.ix_(low, low)] / np.outer(share, share) + np.diag((1e-4 / share) ** 2)
    smooth = smoothed(measured.tests.take(low), np.log(share), noise, levels)
    values, roots = np.empty(len(tests)), np.empty((len(tests), smooth.root.shape[1]), np.float32)
    base = known.row(())
    for position, (singles, pairs) in enumerate(known.parts(tests)):
        order = len(singles)
        rows = [base, *singles, *(row for *_, row in pairs)]
        weight = np.array([1 - order + len(pairs), *[2 - order] * order, *[1] * len(pairs)], np.float64)
        values[position] = np.exp(min(0.0, float(weight @ smooth.log[rows])))
        roots[position] = values[position] * (weight @ smooth.root[rows])
    return values, roots


def _factors(known: Known, log: Floats) -> dict[tuple[int, int], float]:
    """B of every two perturbations, in the order in which they are applied."""
    measured = known.measured
    noise = (measured.error / np.clip(measured.share, FLOOR, 1)) ** 2
    squares: dict[tuple[int, int], list[tuple[float, float]]] = {}
    pairs = measured.tests.take(measured.tests.order == 2)
    for (singles, both), steps in zip(known.parts(pairs), pairs.chains(), strict=True):
        for a, b, row in both:
            interaction = log[row] - log[singles[a]] - log[singles[b]] + log[known.row(())]
            error = noise[row] + noise[singles[a]] + noise[singles[b]]
            squares.setdefault((steps[a][0], steps[b][0]), []).append((float(interaction**2), float(error)))
    factors = {}
    for names, entries in squares.items():
        total, error = np.mean(entries, axis=0)
        factors[names] = float(max(0.0, 1 - error / max(total, 1e-12)))
    return factors
