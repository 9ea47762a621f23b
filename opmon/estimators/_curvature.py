"""The bias of a smooth function of the draws, which is that of its curvature."""

from __future__ import annotations

import numpy as np

from opmon.abc import Measure
from opmon.estimators._known import Known
from opmon.types import Floats

DRAWS = 32
STEP = 0.1
"""So much are weights moved, relative to how far the design lets them vary: small, so that none falls to 0."""
MOST = 0.5
"""No more of a standard error is taken for bias: beyond it, terms of higher order decide."""


def bias_of(known: Known, measure: Measure, influence: Floats, value: float, error: float) -> float:
    """``½ Σ_kl ∂²T/∂a_k∂a_l Cov(a_k, a_l)``, by moving the weights: the bias of ``T̂`` of order 1/n.

    Random signs, centred in each cell of the design as its draws are, move the weights as far as the design lets a
    linear function of them vary, and back: the mean of ``T`` at both less ``T`` in the middle is the bias. A function
    that is linear has none. 32 pairs of a fixed seed tell, of which the error is small beside that of ``T̂`` itself.
    """
    if error <= 0 or len(known.rows) < 3:
        return 0.0
    cell, left = known.cells
    count = np.bincount(cell)[cell]
    scale = np.sqrt(left * count / np.maximum(count - 1, 1))
    terms = known.weights * influence
    centred = terms - (np.bincount(cell, weights=terms) / np.bincount(cell))[cell]
    spread = float((scale * centred) @ (scale * centred))
    if spread <= 0:
        return 0.0
    signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(DRAWS, len(cell)))
    found = 0.0
    for sign in signs:
        moved = STEP * scale * (sign - (np.bincount(cell, weights=sign) / np.bincount(cell))[cell])
        ends = (measure.value(known.rows, known.weights * (1 + way * moved)) for way in (1, -1))
        found += (sum(ends) / 2 - value) / STEP**2
    found *= error**2 / spread / DRAWS
    return float(np.clip(found, -MOST * error, MOST * error)) if np.isfinite(found) else 0.0
