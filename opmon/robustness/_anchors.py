"""Estimates of tests that looked at some inputs, by a few tests on all: the regression estimator, with its sequence.

A few tests, the anchors, look at all N inputs. Whether an input is right under another test σ goes with whether, and by
what margin, it is right under the anchors (all tests look at the same inputs). So with x_i the anchors' outcomes on
input i and z_i the outcome under σ on n inputs drawn at
random,

    β̂ = argmin_β Σ_{i∈n} w_i (z_i − x_iβ)² + λ‖β‖²        r̂_σ = Σ_{i≤N} w_i x_iβ̂ / Σ_{i≤N} w_i + ē_n

with ē_n the mean residual (zero but for λ): the error is that of the residuals, not of z. The half-width is a
normal-mixture confidence sequence of the residual mean with the finite population factor √(1 − n/N): asymptotic, and
good at all n at once, so that one may look after every block and stop.

References: Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, chapter 6; Waudby-Smith, Arbour, Sinha,
Kennedy and Ramdas, Time-uniform central limit theory and asymptotic confidence sequences, 2024, theorem 2.2.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.types import Array, Floats

_RIDGE = 2.0
_MOST = 40
"""Columns that are regressed on."""
_TIGHTEST = 0.15
"""The share of the inputs at which the sequence is tightest."""


@dataclass(frozen=True, eq=False)
class Anchors:
    """One row of outcomes per input, the constant first, and the weight of each input (mean 1)."""

    outcomes: Floats
    weights: Floats

    @classmethod
    def of(cls, right: Array, margin: Array | None, weights: NDArray[np.float64] | None, inputs: int) -> Anchors:
        """The anchors by tests (one row each) that looked at all inputs; without any, only the constant."""
        columns = [np.ones((1, inputs)), right.astype(np.float64)]
        if margin is not None:
            columns.append(np.tanh(margin.astype(np.float64) / 4))
        outcomes = np.concatenate(columns).T
        weights = np.ones(inputs) if weights is None else weights * (inputs / weights.sum())
        most = min(_MOST, max(1, inputs // 8))
        if inputs > 1 and outcomes.shape[1] > most:
            outcomes = outcomes[:, :most]
        return cls(np.ascontiguousarray(outcomes), weights)

    def estimate(self, right: Array, level: float) -> tuple[Floats, Floats, Floats]:
        """(share, standard error, half-width that holds at all n at once) of the mean over all inputs.

        ``right`` has one row per test and one column per input, −1 (or NaN) where the test has not looked.
        """
        total = len(self.outcomes)
        mask = right >= 0
        n = mask.sum(axis=1)
        w, x = self.weights, self.outcomes[:, : max(1, int(n.min(initial=total)) // 8)]
        z = np.where(mask, right, 0).astype(np.float64)
        penalty = np.diag([0.0] + [_RIDGE] * (x.shape[1] - 1))
        gram = (mask @ _products(x, w)).reshape(len(z), x.shape[1], x.shape[1])
        inverse = np.linalg.inv(gram + penalty)
        beta = np.einsum("tpq,tq->tp", inverse, (z * w) @ x)
        fitted = beta @ x.T
        residual = np.where(mask, z - fitted, 0)
        held = mask @ w
        mean = fitted @ w / total + residual @ w / held
        freedom = np.maximum(n - np.einsum("tpq,tqp->t", inverse, gram), 1.0)
        variance = ((residual * w) ** 2).sum(axis=1) / freedom + 0.25 / n
        error = np.sqrt(variance / n * np.maximum(0.0, 1 - n / total))
        low = z @ w / total  # what is left may be all wrong, or all right
        half = error * np.array([boundary(int(seen), total, level) for seen in n])
        return np.clip(mean, low, low + (total - held) / total), error, half


def _products(x: Floats, w: Floats) -> Floats:
    """w_i x_i x_iᵀ, one row per input."""
    return np.asarray((x[:, :, None] * x[:, None, :] * w[:, None, None]).reshape(len(x), -1))


@functools.lru_cache(maxsize=4096)
def boundary(n: int, total: int, level: float) -> float:
    """The half-width of the sequence in standard errors."""
    alpha = 1 - level
    rho2 = (-2 * np.log(alpha) + np.log(-2 * np.log(alpha)) + 1) / max(_TIGHTEST * total, 1.0)
    a = n * rho2 + 1
    return float(np.sqrt(2 * a / (n * rho2) * np.log(np.sqrt(a) / alpha)))
