"""Ridge regression of outcomes by Newton's method: logistic for failures, log-linear for losses."""

from __future__ import annotations

import numpy as np

from opmon.types import Numbers

ROUNDS = 25
LONGEST_STEP = 2.0


def fit(X: Numbers, y: Numbers, prior: Numbers, precision: float, binary: bool, levels: int = 1) -> Numbers:
    """β that maximises ``log-likelihood − Σ_k precision (β_k − prior_k)² / 2``.

    ``P(y = 1) = 1/(1 + exp(−Xβ))`` where ``binary``, else ``E(y) = exp(Xβ)`` with the quasi-likelihood of Poisson's
    distribution (variance in proportion to the mean). The first ``levels`` columns of ``X`` are the constant, or one
    for each part of the rows: they are drawn, hardly, towards the mean outcome. Iteratively reweighted least squares;
    a step is cut to ``LONGEST_STEP`` in any coordinate, so separable or few outcomes do no harm.
    """
    mean = (y.sum() + 0.5) / (len(y) + 1)
    target = prior.astype(np.float64)
    target[:levels] = np.log(mean / (1 - mean)) if binary else np.log(mean)
    penalty = np.full(X.shape[1], precision)
    penalty[:levels] = 1e-2
    beta = target.copy()
    for _ in range(ROUNDS):
        eta = np.clip(X @ beta, -15, 15)
        mu = 1 / (1 + np.exp(-eta)) if binary else np.exp(eta)
        weight = mu * (1 - mu) if binary else mu
        gradient = X.T @ (y - mu) - penalty * (beta - target)
        step = np.linalg.solve((X * weight[:, None]).T @ X + np.diag(penalty), gradient)
        longest = float(np.abs(step).max())
        beta = beta + step * min(1.0, LONGEST_STEP / max(longest, 1e-12))
        if longest < 1e-6:
            break
    return np.asarray(beta)
