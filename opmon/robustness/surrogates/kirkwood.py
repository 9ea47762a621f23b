"""Kirkwood's superposition: singles and pairs, and nothing beyond."""

from __future__ import annotations

import numpy as np

from opmon.robustness.space import Tests
from opmon.robustness.surrogates.core import FLOOR, Floats, Known


def kirkwood(known: Known, tests: Tests) -> Floats:
    """log r_σ = log r_0 + Σ_j a_j + Σ_{i<j} a_ij with a_j = log r_j − log r_0 and
    a_ij = log r_ij − log r_0 − a_i − a_j.

    Exact at order ≤ 2. Beyond, it takes the third-order interaction for zero; with many pairs their errors add up.

    Reference: Kirkwood, Statistical mechanics of fluid mixtures, 1935; METHODS of TestifAI call it additive with pairs.
    """
    log = np.log(np.clip(known.measured.share, FLOOR, 1))
    base = log[known.row(())]
    values = []
    for singles, pairs in known.parts(tests):
        total = base + sum(log[row] - base for row in singles)
        total += sum(log[row] - log[singles[a]] - log[singles[b]] + base for a, b, row in pairs)
        values.append(np.exp(total))
    return np.asarray(np.clip(np.array(values), 0, 1))
