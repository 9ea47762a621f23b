"""The loss that is expected of an input, from its variables: the model's own scores, calibrated by past labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.expected.design import Design, Seen
from opmon.types import Floats

RIDGES = (3.0, 30.0, 300.0, 3e3, 3e4, 3e6)
"""How many labels hold the coefficients where they start; how much each of these counts, the labels tell."""
STEPS = 25
LEAST = 0.01
"""A calibration of which the labels make less is left out."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """A regression of the loss on the columns of a design, with the covariance of its coefficients."""

    coefficients: Floats
    covariance: NDArray[np.float64]
    evidence: float
    """The logarithm of how likely the labels are by it (Laplace's approximation)."""
    share: float = 1.0
    """How much it counts beside others."""


@dataclass(frozen=True)
class Mean:
    """What a calibration expects of all inputs of a frame."""

    value: float
    variance: float
    """Of the coefficients, and of the frame's own losses around what is expected of them."""


def expected(design: Design, X: NDArray[np.float64], offset: Floats, coefficients: Floats) -> Floats:
    """The expected loss of each row."""
    score = X @ coefficients + offset
    return np.asarray(1 / (1 + np.exp(-np.clip(score, -30, 30)))) if design.binary else score


def calibrations(design: Design, inputs: Seen, losses: Floats, weights: Floats) -> list[Calibration]:
    """Regressions held back by each of ``RIDGES``, with the shares that the labels give them (model averaging)."""
    X, offset = design.columns(inputs), design.offset(inputs)
    fit = _logistic if design.binary else _linear
    tried = [fit(design, X, offset, losses, weights, ridge) for ridge in RIDGES]
    likely = np.array([each.evidence for each in tried])
    share = np.exp(likely - likely.max())
    share[share < LEAST * share.sum()] = 0
    share /= share.sum()
    shared = zip(tried, share.tolist(), strict=True)
    return [Calibration(one.coefficients, one.covariance, one.evidence, part) for one, part in shared if part]


def means(design: Design, tried: Sequence[Calibration], frame: Seen) -> list[Mean]:
    """What each calibration expects of a frame, read once."""
    count = len(tried)
    total, noise, slope = np.zeros(count), np.zeros(count), np.zeros((count, design.width))
    for part in frame.chunks():
        X, offset = design.columns(part), design.offset(part)
        for k, each in enumerate(tried):
            value = expected(design, X, offset, each.coefficients)
            steep = value * (1 - value) if design.binary else np.ones(len(value))
            total[k] += value.sum()
            noise[k] += steep.sum() if design.binary else 0.0
            slope[k] += steep @ X
    size = len(frame)
    of_coefficients = [float(slope[k] @ each.covariance @ slope[k]) / size**2 for k, each in enumerate(tried)]
    return [Mean(float(total[k]) / size, of_coefficients[k] + float(noise[k]) / size**2) for k in range(count)]


def _hold(design: Design, ridge: float) -> Floats:
    """By how much each coefficient is held back; a column varies by about 1/12, the intercept not at all."""
    hold = np.full(design.width, ridge)
    hold[0] = ridge / 12 if design.starts else 1e-3
    return hold


def _linear(
    design: Design, X: NDArray[np.float64], offset: Floats, y: Floats, weights: Floats, ridge: float
) -> Calibration:
    hold = _hold(design, ridge)
    spread = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)) or 1.0
    H = (X * weights[:, None]).T @ X + np.diag(hold)
    beta = np.linalg.solve(H, X.T @ (weights * (y - offset)))
    left = float(weights @ (y - offset - X @ beta) ** 2 + hold @ beta**2)
    evidence = -0.5 * left / spread + 0.5 * float(np.log(hold).sum() - np.linalg.slogdet(H)[1])
    return Calibration(np.asarray(beta, np.float64), np.asarray(np.linalg.inv(H) * spread, np.float64), evidence)


def _logistic(
    design: Design, X: NDArray[np.float64], offset: Floats, y: Floats, weights: Floats, ridge: float
) -> Calibration:
    """Newton's method from the offset: few labels leave the coefficients where they start."""
    hold, start = _hold(design, ridge), np.zeros(design.width)
    if not design.starts:
        rate = (float(weights @ y) + 0.5) / (float(weights.sum()) + 1)
        start[0] = np.log(rate / (1 - rate))
    beta = start.copy()
    for _ in range(STEPS):
        p = expected(design, X, offset, beta)
        H = (X * (weights * (p * (1 - p) + 1e-6))[:, None]).T @ X + np.diag(hold)
        step = np.linalg.solve(H, X.T @ (weights * (y - p)) - hold * (beta - start))
        beta = beta + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-6:
            break
    p = np.clip(expected(design, X, offset, beta), 1e-9, 1 - 1e-9)
    fit = float(weights @ (y * np.log(p) + (1 - y) * np.log(1 - p)) - 0.5 * hold @ (beta - start) ** 2)
    evidence = fit + 0.5 * float(np.log(hold).sum() - np.linalg.slogdet(H)[1])
    return Calibration(beta, np.asarray(np.linalg.inv(H), np.float64), evidence)
