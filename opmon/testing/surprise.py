"""Surprise adequacy as SADL defines it, one input at a time, in float64: what the graph's heads are compared with."""

from __future__ import annotations

import numpy as np

from opmon.types import Array


def dsa(traces: Array, predicted: Array, activation: Array, number: int, denominator: str = "reference") -> float:
    """Equations 3 to 5 of SADL (Kim et al., ICSE 2019); ``number`` is the predicted class of the input.

    >>> traces, predicted = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1])
    >>> dsa(traces, predicted, np.array([1.5]), 0)
    0.125
    """
    traces, activation = traces.astype(np.float64), activation.astype(np.float64)
    own, others = traces[predicted == number], traces[predicted != number]
    distances = np.linalg.norm(own - activation, axis=1)
    start = own[distances.argmin()] if denominator == "reference" else activation
    return float(distances.min() / np.linalg.norm(others - start, axis=1).min())


def lsa(traces: Array, predicted: Array, activation: Array, number: int, kept: Array) -> float:
    """Equations 1 and 2 of SADL over the neurons ``kept``, written out: Scott's bandwidth, one kernel per trace."""
    own = traces[predicted == number][:, kept].astype(np.float64)
    count, size = own.shape
    covariance = np.atleast_2d(np.cov(own, rowvar=False)) * count ** (-2.0 / (size + 4))
    difference = own - activation[kept].astype(np.float64)
    exponents = -np.einsum("ij,ij->i", difference, np.linalg.solve(covariance, difference.T).T) / 2
    top = exponents.max()
    _, logdet = np.linalg.slogdet(2 * np.pi * covariance)
    return float(-(top + np.log(np.exp(exponents - top).sum()) - np.log(count) - logdet / 2))
