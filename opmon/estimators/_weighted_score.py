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
from scipy.special import ndtri

from opmon.types import Numbers

KNOWN = 1e9
STEPS = 60
REFINEMENTS, MOST_REFINEMENTS = 4, 12
SMALL = 0.01
"""More are made while the last step is larger beside the way from the estimate: of 100,000 draws without a failure."""
GRID = np.geomspace(1e-6, 1e6, STEPS)
FINER = np.linspace(0, 1, 24)


def score_bounds(A: Numbers, n: Numbers, x: Numbers, level: float) -> tuple[float, float]:
    """Lower and upper bound for Σ A_c p_c. ``n`` and ``x`` may be fractional; ``n_c = 0`` is allowed.

    A cell with ``n_c >= KNOWN`` was drawn whole: its rate is known and adds no width.
    """
    A, n, x = (np.asarray(v, dtype=np.float64) for v in (A, n, x))
    x = np.clip(x, 0, n)
    known = n >= KNOWN
    offset = float((A[known] * x[known] / n[known]).sum())
    unseen = float(A[n <= 0].sum())
    used = (A > 0) & (n > 0) & ~known
    if not used.any():
        return offset, offset + unseen
    A, n, x = A[used], n[used], x[used]
    z = float(ndtri(0.5 + level / 2))
    most = _upper(A, n, np.stack((x, n - x)), z)  # the second with right and wrong exchanged
    total = float(A.sum())
    return offset + max(total - float(most[1]), 0.0), offset + unseen + min(float(most[0]), total)


def constrained_rates(A: Numbers, n: Numbers, x: Numbers, multiplier: Numbers) -> Numbers:
    """p̃_c for multipliers μ = −λ > 0: the rates that make a larger θ most likely."""
    a = multiplier * A
    b = n - a
    root = np.sqrt(b * b + 4 * a * x)
    # the positive root of a p² + (n − a) p − x = 0, in the form that does not cancel
    return np.asarray(np.where(b >= 0, 2 * x / (np.abs(b) + root + 1e-300), (root - b) / (2 * a)))


def _upper(A: Numbers, n: Numbers, x: Numbers, z: float) -> Numbers:
    """The largest accepted θ for each row of ``x``; the grid of multipliers is refined around the last accepted one."""
    estimate = x @ (A / n)
    rows = np.arange(len(x))
    multipliers = np.broadcast_to(GRID * float((n / A).max()), (len(x), STEPS))
    best = estimate
    for done in range(1, MOST_REFINEMENTS + 1):
        rates = constrained_rates(A, n, x[:, None, :], multipliers[:, :, None])
        theta = rates @ A
        deviation = (rates * (1 - rates)) @ (A * A / n)
        accepted = theta - estimate[:, None] <= z * np.sqrt(np.maximum(deviation, 0))
        width = multipliers.shape[1]
        last = np.where(accepted.any(axis=1), width - 1 - np.argmax(accepted[:, ::-1], axis=1), 0)
        best = np.maximum(best, np.where(accepted[rows, last], theta[rows, last], estimate))
        after = np.minimum(last + 1, width - 1)
        if done >= REFINEMENTS and (theta[rows, after] - best <= SMALL * (theta[rows, after] - estimate)).all():
            break
        low, high = multipliers[rows, last], multipliers[rows, after]
        multipliers = low[:, None] + (high - low)[:, None] * FINER
    return np.asarray(best)
