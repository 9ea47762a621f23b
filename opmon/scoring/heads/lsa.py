"""Likelihood-based surprise adequacy (SADL)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.densities_core import Density, densities
from opmon.scoring.graph import UNKNOWN, MonitorGraph
from opmon.scoring.graph_core import Nodes
from opmon.scoring.reference import Reference


@dataclass(frozen=True)
class LikelihoodSurprise:
    """``LSA(x) = −log f̂(a(x))`` (Kim et al., ICSE 2019, equations 1 and 2).

    ``f̂`` is a Gaussian kernel density with Scott's bandwidth on the training traces: of the inputs predicted as the
    same class for classification, of all for regression. Neurons that vary less than 1e-5 in some class are left out. A
    singular covariance is kept invertible, a class of few traces has the covariance that all classes share, and a class
    that training never predicted is as surprising as can be.

    Classification: brought to 0…1 with the limits on the training data. Regression: shifted to begin at 0.
    """

    def nodes(self, graph: MonitorGraph) -> str | None:
        if not graph.routable:
            return None
        nodes, reference, _ = graph.nodes, graph.reference, graph.layer
        kept, fitted = densities(reference)
        raw = graph.unrouted(
            {route.number: _surprise(nodes, route.activations, kept, fitted[route.number]) for route in graph.routes}
        )
        return graph.normalised(raw, reference.limits.get("lsa"))

    def function(
        self, reference: Reference
    ) -> Callable[[NDArray[np.float32], NDArray[np.int64]], NDArray[np.floating[Any]]]:
        """The same in NumPy, for models of so many classes that a graph with a branch for each would be slow."""
        kept, fitted = densities(reference)
        limits = reference.limits.get("lsa")

        def values(activations: NDArray[np.float32], predicted: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
            result = np.full(len(activations), UNKNOWN)
            order = np.argsort(predicted, kind="stable")
            numbers, starts = np.unique(predicted[order], return_index=True)
            for number, start, stop in zip(numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
                if number in fitted:
                    rows = order[start:stop]
                    result[rows] = fitted[number].surprise(activations[rows][:, kept].astype(np.float64))
            if limits is None:
                return result
            return np.clip((result - limits[0]) / max(limits[1] - limits[0], 1e-30), 0.0, 1.0)

        return values


def _surprise(nodes: Nodes, activations: str, kept: NDArray[np.bool_], density: Density) -> str:
    """Whitened in float64; one product with the whitened traces; then the logarithm of the sum of exponentials.

    That sum is ``e_1 − LogSoftmax(e)_1``: ONNX Runtime does max, exp and sum in one pass there, which is quicker than
    the four operators written out, and much quicker than its ReduceLogSumExp.
    """
    used = activations
    if not kept.all():
        used = nodes.add("Gather", [activations, nodes.constant(np.flatnonzero(kept), np.int64)], axis=1)
    centred = nodes.add("Sub", [nodes.cast(used, np.float64), nodes.constant(density.mean)])
    z = nodes.add("MatMul", [centred, nodes.constant(density.whitening)])
    z = nodes.clip(z, -1e15, 1e15, np.float64)  # the square of what is farther out is beyond float32
    square = nodes.add("Mul", [nodes.reduce("ReduceSumSquare", z, [1]), nodes.constant(0.5, np.float64)])
    squares = np.einsum("ij,ij->i", density.points, density.points)
    middle_first = np.argsort(squares, kind="stable")  # the first exponent is then of moderate size
    bias = (-squares[middle_first] / 2).astype(np.float32)
    exponents = nodes.transposed_product(
        nodes.cast(z, np.float32), density.points[middle_first].astype(np.float32), bias
    )
    shares = nodes.add("LogSoftmax", [exponents], axis=1)
    first = nodes.constant(0, np.int64)
    mass = nodes.add(
        "Sub", [nodes.add("Gather", [exponents, first], axis=1), nodes.add("Gather", [shares, first], axis=1)]
    )
    found = nodes.add("Sub", [square, nodes.cast(mass, np.float64)])
    found = nodes.add("Add", [found, nodes.constant(density.constant, np.float64)])
    return nodes.cast(nodes.clip(found, -UNKNOWN, UNKNOWN, np.float64), np.float32)
