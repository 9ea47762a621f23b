"""What a few tests on all inputs say about a test that looked at some: the regression estimator, with its sequence.

A few tests, the anchors, look at all N inputs. Whether an input is right under another test σ goes with whether, and by
what margin, it is right under the anchors (all tests look at the same inputs). So with x_i the anchors' outcomes on
input i and z_i the outcome under σ on the first n inputs,

    β̂ = argmin_β Σ_{i≤n} w_i (z_i − x_iβ)² + λ‖β‖²        r̂_σ = Σ_{i≤N} w_i x_iβ̂ / Σ_{i≤N} w_i + ē_n

with ē_n the mean residual (zero but for λ): the error is that of the residuals, not of z. The half-width is a
normal-mixture confidence sequence of the residual mean with the finite population factor √(1 − n/N): asymptotic, and
good at all n at once, so that one may look after every block and stop.

References: Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, chapter 6; Waudby-Smith, Arbour, Sinha,
Kennedy and Ramdas, Time-uniform central limit theory and asymptotic confidence sequences, 2024, theorem 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_RIDGE = 2.0
_TIGHTEST = 0.15
"""The share of the inputs at which the sequence is tightest."""


@dataclass(frozen=True, eq=False)
class Anchors:
    """One row of outcomes per input, the constant first, and the weight of each input (mean 1)."""

    outcomes: Floats
    weights: Floats

    @classmethod
    def of(
        cls, right: NDArray[Any], margin: NDArray[Any] | None, weights: NDArray[np.float64] | None, inputs: int
    ) -> Anchors:
        """Of tests (one row each) that looked at all inputs; none of them: only the constant."""
        columns = [np.ones((1, inputs)), right.astype(np.float64)]
        if margin is not None:
            columns.append(np.tanh(margin.astype(np.float64) / 4))
        outcomes = np.concatenate(columns).T
        weights = np.ones(inputs) if weights is None else weights * (inputs / weights.sum())
        if inputs > 1 and outcomes.shape[1] > inputs // 8:
            outcomes = outcomes[:, : max(1, inputs // 8)]
        return cls(np.ascontiguousarray(outcomes), weights)

    def estimate(self, values: NDArray[Any], level: float) -> tuple[Floats, Floats, Floats]:
        """(share, standard error, half-width that holds at all n at once) of the mean over all inputs.

        ``values`` has one row per test and one column for each of the first n inputs.
        """
        total, n = len(self.outcomes), values.shape[1]
        w, x, z = self.weights[:n], self.outcomes[:n], values.astype(np.float64)
        x = x[:, : max(1, n // 8)]
        penalty = np.diag([0.0] + [_RIDGE] * (x.shape[1] - 1))
        gram = x.T @ (x * w[:, None])
        beta = np.linalg.solve(gram + penalty, x.T @ (z * w).T)
        residual = z - (x @ beta).T
        mean = self.weights @ self.outcomes[:, : x.shape[1]] / total @ beta + residual @ w / w.sum()
        freedom = max(n - np.trace(np.linalg.solve(gram + penalty, gram)), 1.0)
        variance = ((residual * w) ** 2).sum(axis=1) / freedom + 0.25 / n
        error = np.sqrt(variance / n * max(0.0, 1 - n / total))
        low, high = z @ w / total, (z @ w + (total - w.sum())) / total  # what is left may be all wrong, or all right
        return np.clip(mean, low, np.maximum(high, low)), error, error * _boundary(n, total, level)


def _boundary(n: int, total: int, level: float) -> float:
    """How many standard errors the sequence is wide."""
    alpha = 1 - level
    rho2 = (-2 * np.log(alpha) + np.log(-2 * np.log(alpha)) + 1) / max(_TIGHTEST * total, 1.0)
    a = n * rho2 + 1
    return float(np.sqrt(2 * a / (n * rho2) * np.log(np.sqrt(a) / alpha)))
