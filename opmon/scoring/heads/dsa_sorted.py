"""The arithmetic of DSA in NumPy: a batch is sorted by class, so that each class is one small product."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.graph.monitor_graph import UNKNOWN
from opmon.scoring.heads._search import Traces, candidates_for, crowd_of, distinct_of
from opmon.scoring.reference.distances import floored
from opmon.scoring.reference.fitted import Reference
from opmon.types import Numbers


def sorted_function(
    reference: Reference, limits: tuple[float, float] | None
) -> Callable[[Traces, NDArray[np.int64]], Numbers]:
    """DSA of a batch whose inputs are sorted by class, so that each class is one small product."""
    order = np.concatenate([distinct_of(reference, number) for number in reference.classes])
    traces, divisors = reference.traces[order], floored(reference.distances)[order]
    bounds = np.searchsorted(reference.predicted[order], np.arange(reference.columns + 1))
    centres = np.stack(
        [
            traces[low:high].mean(axis=0, dtype=np.float64) if high > low else np.zeros(traces.shape[1])
            for low, high in itertools.pairwise(bounds)
        ]
    ).astype(np.float32)
    centred = traces - centres[reference.predicted[order]]
    bias = (-np.einsum("ij,ij->i", centred, centred, dtype=np.float64) / 2).astype(np.float32)
    products = [np.ascontiguousarray(centred[low:high].T) for low, high in itertools.pairwise(bounds)]
    wanted = candidates_for(max(crowd_of(reference, number) for number in reference.classes))
    count = min(wanted, max(1, int(np.diff(bounds).max())))

    def candidates(activations: Traces, number: int) -> NDArray[np.int64]:
        low, high = int(bounds[number]), int(bounds[number + 1])
        scores = (activations - centres[number]) @ products[number]
        scores += bias[low:high]
        if high - low <= count:
            places = np.broadcast_to(np.arange(high - low), scores.shape)
        else:
            places = np.argpartition(scores, high - low - count, axis=1)[:, high - low - count :]
        if places.shape[1] < count:
            places = np.concatenate([places, np.repeat(places[:, :1], count - places.shape[1], axis=1)], axis=1)
        return places + low

    def values(activations: Traces, predicted: NDArray[np.int64]) -> Numbers:
        result = np.full(len(activations), UNKNOWN)
        arranged = np.argsort(predicted, kind="stable")
        sorted_classes = predicted[arranged]
        starts = np.searchsorted(sorted_classes, np.arange(reference.columns + 1))
        own = activations[arranged]
        near = np.zeros((len(own), count), np.int64)
        known = np.zeros(len(own), dtype=bool)
        for number in np.unique(sorted_classes).tolist():
            if bounds[number + 1] > bounds[number]:
                part = slice(starts[number], starts[number + 1])
                near[part], known[part] = candidates(own[part], number), True
        own, near = own[known], near[known]
        difference = traces[near].astype(np.float64) - own[:, None, :]
        squares = np.einsum("ijk,ijk->ij", difference, difference)
        best = squares.argmin(axis=1)[:, None]
        quotient = np.sqrt(np.take_along_axis(squares, best, 1)) / divisors[np.take_along_axis(near, best, 1)]
        result[arranged[known]] = np.minimum(quotient[:, 0], UNKNOWN)
        if limits is None:
            return result
        low, high = limits
        return np.clip((result - low) / max(high - low, 1e-30), 0.0, 1.0)

    return values
