"""Proxies for the outcome, learned from the auxiliary variables, for model-assisted estimation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators._answers import answered
from opmon.problems import is_binary
from opmon.types import Draw, Numbers, Sample

CHUNK = 1 << 16
GRID = 256
RIDGE = 2.0
VALUE, MEAN, MEAN_VARIANCE = "proxy", "proxy_mean", "proxy_mean_variance"
"""The column and the constants of a draw that carries a proxy."""


@dataclass(frozen=True, eq=False)
class Proxy:
    """A guess ``g`` of the outcome: per draw its ``value``, and its mean over the frame, ``frame_mean``.

    The mean is per draw too, because a cross-fitted proxy is another function for every fold.
    """

    value: NDArray[np.float64]
    frame_mean: NDArray[np.float64]
    mean_variance: float = 0.0
    """The variance of the mean, where it is that of a random sample of the frame; 0 where all inputs have a guess."""

    def __post_init__(self) -> None:
        if self.value.shape != self.frame_mean.shape:
            raise InputError(f"one mean per value: got {self.value.shape} and {self.frame_mean.shape}")
        if not (np.isfinite(self.value).all() and np.isfinite(self.frame_mean).all()):
            raise InputError("a proxy must be finite for every draw; got NaN or infinity")

    @classmethod
    def of_frame(cls, guesses: NDArray[np.float64], draw: Draw) -> Proxy:
        """The proxy of a guess for every input of the frame, made without the labels of this draw."""
        if len(guesses) != draw.frame_size:
            raise InputError(f"a guess for each of the frame's {draw.frame_size} inputs is needed; got {len(guesses)}")
        mean = float(guesses.mean(dtype=np.float64))
        return cls(guesses[draw.positions].astype(np.float64), np.full(len(draw), mean))

    @classmethod
    def of_sample(cls, value: NDArray[np.float64], others: NDArray[np.float64], frame_size: int) -> Proxy:
        """The proxy of guesses for the draws and for ``others``: a simple random sample of the frame, drawn without
        replacement and independently of the draws, which the mean is taken over."""
        n = len(others)
        if not 0 < n <= frame_size:
            raise InputError(f"guesses for 1 to {frame_size} other inputs are needed for the mean; got {n}")
        spread = float(others.var(ddof=1)) if n > 1 else float(value.var())
        return cls(value, np.full(len(value), float(others.mean())), (1 - n / frame_size) * spread / n)

    @classmethod
    def of_draw(cls, draw: Draw) -> Proxy | None:
        """The proxy that a draw carries (:meth:`carried_by`); None where it carries none."""
        if VALUE not in draw.columns:
            return None
        mean, variance = (float(draw.constants[name]) for name in (MEAN, MEAN_VARIANCE))
        return cls(draw.columns[VALUE].astype(np.float64), np.full(len(draw), mean), variance)

    def carried_by(self, draw: Draw) -> Draw:
        """The draw with this proxy: whatever keeps the draw keeps what its estimate is assisted by."""
        mean = float(self.frame_mean[0]) if len(self.frame_mean) else 0.0
        constants = {**draw.constants, MEAN: np.array(mean), MEAN_VARIANCE: np.array(self.mean_variance)}
        return replace(draw, columns={**draw.columns, VALUE: self.value}, constants=constants)


def cross_fitted(variables: Mapping[str, Numbers], sample: Sample, rng: np.random.Generator, folds: int = 5) -> Proxy:
    """A proxy whose value for each draw was fitted without the label of that draw.

    The drawn inputs are split at random into ``folds``; those of one fold are guessed by a ridge regression (logistic
    for a classifier) on the quantiles of all variables and their squares, fitted on the answers in the other folds.
    All draws of one input share a fold.
    """
    if folds < 2:
        raise InputError(f"folds must be at least 2; got {folds}")
    if not variables:
        raise InputError("a proxy needs at least one auxiliary variable")
    answers, draw = answered(sample), sample.draw
    inputs, which = np.unique(draw.positions, return_inverse=True)
    fold = rng.permutation(len(inputs))[which] % folds
    binary = is_binary(sample.outcomes[answers], sample.problem)
    features = {name: Quantiles.of(values) for name, values in variables.items()}
    design = design_of(variables, features, draw.positions)
    value, frame_mean = np.zeros(len(draw)), np.zeros(len(draw))
    for number in np.unique(fold):
        mine = fold == number
        use = answers & ~mine
        weights = fitted(design[use], sample.outcomes[use], binary)
        value[mine] = guessed(design[mine], weights, binary)
        frame_mean[mine] = _mean_over(variables, features, draw.frame_size, weights, binary)
    return Proxy(value, frame_mean)


@dataclass(frozen=True, eq=False)
class Quantiles:
    """The distribution function of a variable over the frame, on a grid of at most ``GRID`` steps."""

    steps: NDArray[np.float64]

    @classmethod
    def of(cls, values: Numbers) -> Quantiles:
        some = values[:: max(1, len(values) // 100_000)]
        return cls(np.quantile(some.astype(np.float64), np.linspace(0, 1, GRID)))

    def at(self, values: Numbers) -> NDArray[np.float64]:
        return np.asarray(np.searchsorted(self.steps, values, side="right") / GRID - 0.5)


def design_of(
    variables: Mapping[str, Numbers], features: Mapping[str, Quantiles], where: NDArray[np.int64] | slice
) -> NDArray[np.float64]:
    columns = [features[name].at(values[where]) for name, values in variables.items()]
    return np.stack([np.ones(len(columns[0])), *columns, *(2 * column**2 for column in columns)], axis=1)


def fitted(X: NDArray[np.float64], y: NDArray[np.float64], binary: bool) -> NDArray[np.float64]:
    """Ridge regression; logistic by Newton's method, targets drawn in a little so that one class alone fits."""
    k = X.shape[1]
    weights = np.zeros(k)
    if not len(y):
        return weights
    penalty = np.diag([1e-6, *([RIDGE] * (k - 1))])
    if not binary:
        scale = float(y.var()) or 1.0
        return np.asarray(np.linalg.solve(X.T @ X + penalty * min(scale, 1.0) + 1e-9 * np.eye(k), X.T @ y))
    rate = (y.sum() + 0.5) / (len(y) + 1)
    weights[0] = np.log(rate / (1 - rate))
    target = (y * len(y) + rate) / (len(y) + 1)
    for _ in range(15):
        p = guessed(X, weights, True)
        gradient = X.T @ (target - p) - penalty @ weights
        weights = weights + np.linalg.solve((X * (p * (1 - p) + 1e-6)[:, None]).T @ X + penalty, gradient)
    return weights


def guessed(X: NDArray[np.float64], weights: NDArray[np.float64], binary: bool) -> NDArray[np.float64]:
    score = X @ weights
    return np.asarray(1 / (1 + np.exp(-np.clip(score, -30, 30))) if binary else np.maximum(score, 0.0))


def _mean_over(
    variables: Mapping[str, Numbers],
    features: Mapping[str, Quantiles],
    size: int,
    weights: NDArray[np.float64],
    binary: bool,
) -> float:
    parts = [slice(start, min(start + CHUNK, size)) for start in range(0, size, CHUNK)]
    return sum(float(guessed(design_of(variables, features, part), weights, binary).sum()) for part in parts) / size
