"""Kernel densities of activation traces, whitened in float64."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.reference.fitted import Reference

VARIANCE = 1e-5
"""A neuron that varies less than this is left out (SADL's threshold)."""
_FLOOR = 1e-8


@dataclass(frozen=True, eq=False)
class Density:
    """A Gaussian kernel density with Scott's bandwidth, in coordinates in which its kernel is the unit ball.

    ``−log f(a) = constant − log Σ_i exp(−‖z − z_i‖² / 2)`` where ``z = (a − mean) @ whitening`` and ``z_i`` are
    ``points``, and ``whitening`` is ``basis · scale``, the basis the same object where classes share a covariance.
    ``constant`` is ``log n + r/2·log 2π + log √det(kernel covariance)``, n points in r dimensions.
    """

    mean: NDArray[np.float64]
    basis: NDArray[np.float64]
    scale: NDArray[np.float64]
    points: NDArray[np.float64]
    constant: float

    @functools.cached_property
    def whitening(self) -> NDArray[np.float64]:
        return self.basis * self.scale

    def surprise(self, traces: NDArray[np.float64], own: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """``−log f``; where the traces are the points numbered ``own``, each is left out of its own density."""
        z = (traces - self.mean) @ self.whitening
        surprises = np.empty(len(z))
        squares = np.einsum("ij,ij->i", self.points, self.points)
        count = len(self.points)
        step = max(1, (1 << 22) // count)
        for start in range(0, len(z), step):
            part = z[start : start + step]
            exponents = part @ self.points.T - squares / 2
            if own is not None:
                exponents[np.arange(len(part)), own[start : start + step]] = -np.inf
            top = exponents.max(axis=1, keepdims=True)
            total = np.log(np.exp(exponents - top).sum(axis=1)) + top[:, 0]
            surprises[start : start + step] = np.einsum("ij,ij->i", part, part) / 2 - total
        return surprises + self.constant + (np.log((count - 1) / count) if own is not None else 0.0)


def kept_neurons(reference: Reference) -> NDArray[np.bool_]:
    """The neurons that a density looks at: those that vary at least ``VARIANCE`` in every class (SADL).

    Where that leaves none, those that vary over all traces; classes of fewer than two traces say nothing.
    """
    variances = [
        reference.traces[rows].var(axis=0, dtype=np.float64)
        for rows in map(reference.of_class, reference.classes)
        if len(rows) > 1
    ]
    kept = np.all([variance >= VARIANCE for variance in variances], axis=0) if variances else np.zeros(0, bool)
    if not kept.any():
        kept = reference.traces.var(axis=0, dtype=np.float64) >= VARIANCE
    return kept if kept.any() else np.ones(reference.traces.shape[1], dtype=bool)


def has_covariance(traces: int, neurons: int) -> bool:
    """Whether a class has enough traces for a covariance of its own."""
    return traces > neurons + 1


def densities(reference: Reference) -> tuple[NDArray[np.bool_], dict[int, Density]]:
    """The neurons that are kept, and the density of each class (regression: of class 0, which is all there is).

    A class with no more traces than neurons has the covariance that all classes share around their means.
    """
    kept = kept_neurons(reference)
    traces = reference.traces[:, kept].astype(np.float64)
    groups = {number: reference.of_class(number) for number in reference.classes}
    shared = None
    by_class = {}
    for number, rows in groups.items():
        own = traces[rows]
        if has_covariance(len(rows), own.shape[1]):
            by_class[number] = _density(own, *np.linalg.eigh(np.atleast_2d(np.cov(own, rowvar=False))))
            continue
        if shared is None:
            shared = np.linalg.eigh(_within(traces, list(groups.values())))
        by_class[number] = _density(own, *shared)
    return kept, by_class


def _within(traces: NDArray[np.float64], groups: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    centred = np.concatenate([traces[rows] - traces[rows].mean(axis=0) for rows in groups])
    product: NDArray[np.float64] = centred.T @ centred / max(1, len(centred) - len(groups))
    return product


def _density(own: NDArray[np.float64], values: NDArray[np.float64], vectors: NDArray[np.float64]) -> Density:
    """The density of some traces by the eigenvalues and -vectors of their covariance."""
    count, size = own.shape
    bandwidth = count ** (-1.0 / (size + 4))  # Scott's rule
    values = values * bandwidth**2
    values = np.maximum(values, max(_FLOOR * float(values.max()), 1e-12))  # a singular covariance has no inverse
    mean, scale = own.mean(axis=0), 1 / np.sqrt(values)
    constant = np.log(count) + size / 2 * np.log(2 * np.pi) + np.log(values).sum() / 2
    return Density(mean, vectors, scale, (own - mean) @ (vectors * scale), float(constant))
