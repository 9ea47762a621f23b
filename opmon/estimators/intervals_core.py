"""Score interval for a weighted sum of proportions, the arithmetic behind :mod:`opmon.estimators.intervals`.

θ = Σ_c A_c p_c over cells ``c`` with known coefficients ``A_c ≥ 0``; cell ``c`` has ``x_c`` failures in ``n_c`` draws.
The interval holds every θ₀ that the score test does not reject:

    |θ̂ − θ₀| ≤ z · sqrt(Σ A_c² p̃_c (1 − p̃_c) / n_c),     p̃ = arg max likelihood subject to Σ A_c p̃_c = θ₀.

With one cell this is Wilson's interval. The constrained maximum is explicit along its Lagrange multiplier λ,
``λA p² − (n + λA) p + x = 0``, so the whole path is one array operation. A cell without failures stays at p̃ = 0 until
``−λ A_c > n_c``: the failures that were not seen are put where they are cheapest, which is where few draws stand for
many inputs.

References: Wilson (JASA 1927); Martín Andrés, Álvarez Hernández, Herranz Tejedor, "Inferences about a linear
combination of proportions", Statistical Methods in Medical Research 20 (2011).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

from opmon.types import Floats

KNOWN = 1e9
STEPS = 96
REFINEMENTS = 3


def score_bounds(A: Floats, n: Floats, x: Floats, level: float, freedom: float | None = None) -> tuple[float, float]:
    """Lower and upper bound for Σ A_c p_c. ``n`` and ``x`` may be fractional; ``n_c = 0`` is allowed.

    A cell with ``n_c >= KNOWN`` was drawn whole: its rate is known and adds no width. ``freedom`` takes Student's
    quantile instead of the normal one.
    """
    A, n, x = (np.asarray(v, dtype=np.float64) for v in (A, n, x))
    used = A > 0
    A, n, x = A[used], n[used], np.clip(x[used], 0, n[used])
    known = n >= KNOWN
    offset = float((A[known] * x[known] / n[known]).sum())
    A, n, x = A[~known], n[~known], x[~known]
    total = float(A.sum())
    if n.sum() == 0:
        return offset, offset + total
    z = float(ndtri(0.5 + level / 2) if freedom is None else stdtrit(freedom, 0.5 + level / 2))
    upper = _upper(A, n, x, z)
    lower = total - _upper(A, n, n - x, z)  # right and wrong exchanged
    return offset + max(lower, 0.0), offset + min(upper, total)


def constrained_rates(A: Floats, n: Floats, x: Floats, multiplier: Floats) -> Floats:
    """p̃_c for each multiplier μ = −λ ≥ 0 (one row each): the rates that make a larger θ most likely."""
    a = multiplier[:, None] * A
    b = n - a
    root = np.sqrt(b * b + 4 * a * x)
    with np.errstate(divide="ignore", invalid="ignore"):
        # the positive root of a p² + (n − a) p − x = 0, in the form that does not cancel
        rates = np.where(b >= 0, 2 * x / (b + root), (root - b) / (2 * a))
    return np.where((a == 0) & (n == 0), 0.0, np.clip(np.nan_to_num(rates), 0.0, 1.0))


def _upper(A: Floats, n: Floats, x: Floats, z: float) -> float:
    seen = n > 0
    estimate = float((A[seen] * x[seen] / n[seen]).sum())
    inverse = np.divide(1.0, n, out=np.zeros_like(n), where=seen)
    typical = float((n[seen] / A[seen]).max())
    multipliers = np.geomspace(1e-6, 1e6, STEPS) * typical
    best = estimate
    for _ in range(REFINEMENTS):
        rates = constrained_rates(A, n, x, multipliers)
        theta = rates @ A
        deviation = (rates * (1 - rates)) @ (A * A * inverse)
        accepted = theta - estimate <= z * np.sqrt(deviation) + (~seen * A).sum()
        last = int(np.flatnonzero(accepted)[-1]) if accepted.any() else 0
        best = max(best, float(theta[last]) if accepted.any() else estimate)
        if last == len(multipliers) - 1:
            return best
        multipliers = np.linspace(multipliers[last], multipliers[last + 1], 24)
    return best
