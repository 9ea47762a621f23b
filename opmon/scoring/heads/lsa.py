"""Likelihood-based surprise adequacy (SADL)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.abc import ArrayFunction, Head
from opmon.scoring.graph.monitor_graph import UNKNOWN, MonitorGraph
from opmon.scoring.heads._lsa import Surprises
from opmon.scoring.reference.densities import densities
from opmon.scoring.reference.fitted import Reference, required
from opmon.types import Numbers


@dataclass(frozen=True)
class LikelihoodSurprise(Head):
    """``LSA(x) = −log f̂(a(x))`` (Kim et al., ICSE 2019, equations 1 and 2).

    ``f̂`` is a Gaussian kernel density with Scott's bandwidth on the training traces: of the inputs predicted as the
    same class for classification, of all for regression. Neurons that vary less than 1e-5 in some class are left out. A
    singular covariance is kept invertible, a class of few traces has the covariance that all classes share, and a class
    that training never predicted is as surprising as can be.

    Classification: brought to 0…1 with the limits on the training data. Regression: shifted to begin at 0.
    """

    def nodes(self, graph: MonitorGraph) -> str | None:
        if graph.sorted_outside:
            return None
        reference, _ = graph.reference, graph.layer
        kept, fitted = densities(reference)
        return graph.normalised(Surprises(graph, kept, fitted).nodes(), reference.limits.get("lsa"))

    def function(self, reference: Reference | None) -> ArrayFunction:
        """The variable in NumPy, for large batches and many classes."""
        kept, fitted = densities(required(reference))
        limits = required(reference).limits.get("lsa")

        def values(activations: NDArray[np.float32], predicted: NDArray[np.int64]) -> Numbers:
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
