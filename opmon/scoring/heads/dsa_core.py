"""The arithmetic of DSA: in a graph, and sorted by class in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.distances_core import crowd, distinct, floored, least_divisor
from opmon.scoring.graph import UNKNOWN, MonitorGraph
from opmon.scoring.graph_core import Nodes
from opmon.scoring.reference import Reference

FEWEST, MOST = 3, 64
"""How many of the apparently nearest traces are compared again: two are the least that repairs float32, and where
traces are crowded it takes two more than crowd together."""
_BLOCK = 64

Traces = NDArray[np.float32]


def neighbour(nodes: Nodes, activations: str, traces: Traces) -> tuple[str, str]:
    """The distance (float64) of each row of ``activations`` to its nearest trace, and which that is.

    Candidates come from one product with the traces, centred on their mean and without the neurons that are the same
    in all of them; the choice among them from their differences in float64, over all neurons.
    """
    live = np.flatnonzero(traces.min(axis=0) != traces.max(axis=0))
    if len(live) == 0:
        live = np.arange(1)
    centre = traces[:, live].mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = traces[:, live] - centre
    bias = (-np.einsum("ij,ij->i", centred, centred, dtype=np.float64) / 2).astype(np.float32)
    used = activations
    if len(live) < traces.shape[1]:
        used = nodes.add("Gather", [activations, nodes.constant(live, np.int64)], axis=1)
    moved = nodes.add("Sub", [used, nodes.constant(centre)])
    candidates = _greatest(nodes, moved, centred, bias, min(candidates_for(traces), len(traces)))
    near = nodes.cast(nodes.add("Gather", [nodes.constant(traces), candidates], axis=0), np.float64)
    difference = nodes.add("Sub", [near, nodes.cast(nodes.unsqueeze(activations, [1]), np.float64)])
    squares = nodes.reduce("ReduceSumSquare", difference, [2])
    best = nodes.add("ArgMin", [squares], axis=1, keepdims=1)
    which = nodes.squeeze(nodes.add("GatherElements", [candidates, best], axis=1), [1])
    square = nodes.squeeze(nodes.add("GatherElements", [squares, best], axis=1), [1])
    return nodes.add("Sqrt", [square]), which


def _greatest(nodes: Nodes, moved: str, centred: Traces, bias: Traces, count: int) -> str:
    """Which ``count`` traces have the greatest ``moved · trace + bias``.

    Among many traces they are looked for in the ``count`` blocks that have the greatest maxima, where they must be: the
    maxima of blocks are found several times as fast as TopK reads all of it.
    """
    if len(centred) < 4 * _BLOCK * count or nodes.opset < 12:  # GatherND has batches since 12
        return nodes.top(nodes.transposed_product(moved, centred, bias), count)[1]
    spare = -len(centred) % _BLOCK
    whole = np.concatenate([centred, np.zeros((spare, centred.shape[1]), np.float32)])
    bias = np.concatenate([bias, np.full(spare, -3e38, np.float32)])
    scores = nodes.transposed_product(moved, whole, bias)
    blocks = nodes.add("Reshape", [scores, nodes.constant([0, len(whole) // _BLOCK, _BLOCK], np.int64)])
    _, chosen = nodes.top(nodes.reduce("ReduceMax", blocks, [2]), count)
    column = nodes.unsqueeze(chosen, [2])
    flat = nodes.constant([0, count * _BLOCK], np.int64)
    values = nodes.add("Reshape", [nodes.add("GatherND", [blocks, column], batch_dims=1), flat])
    begin = nodes.add("Mul", [column, nodes.constant(_BLOCK, np.int64)])
    numbers = nodes.add("Reshape", [nodes.add("Add", [begin, nodes.constant(np.arange(_BLOCK), np.int64)]), flat])
    found = nodes.add("GatherElements", [numbers, nodes.top(values, count)[1]], axis=1)
    return nodes.add("Min", [found, nodes.constant(len(centred) - 1, np.int64)])


def candidates_for(traces: Traces) -> int:
    """How many candidates are enough for these traces."""
    return int(np.clip(crowd(traces) + 2, FEWEST, MOST))


def distinct_of(reference: Reference, number: int) -> NDArray[np.int64]:
    """The traces of a class, each value once: equal ones have equal distances, and would only crowd out others."""
    rows = reference.of_class(number)
    return rows[distinct(reference.traces[rows])] if len(rows) else rows


def from_input(graph: MonitorGraph, reference: Reference) -> str:
    """DSA with both distances taken from the input: its own class against the nearest of all others."""
    nodes = graph.nodes
    columns = []
    for number in range(graph.columns):
        rows = distinct_of(reference, number)
        if len(rows):
            distance = neighbour(nodes, graph.activations, reference.traces[rows])[0]
        else:  # no trace: infinitely far
            zeros = nodes.cast(nodes.add("Mul", [graph.predicted, nodes.constant(0, np.int64)]), np.float64)
            distance = nodes.add("Add", [zeros, nodes.constant(UNKNOWN, np.float64)])
        columns.append(nodes.unsqueeze(distance, [1]))
    table = nodes.add("Concat", columns, axis=1)
    index = nodes.unsqueeze(graph.predicted, [1])
    own = nodes.squeeze(nodes.add("GatherElements", [table, index], axis=1), [1])
    classes = nodes.constant(np.arange(graph.columns), np.int64)
    hidden = nodes.cast(nodes.add("Equal", [classes, index]), np.float64)
    others = nodes.add("Add", [table, nodes.add("Mul", [hidden, nodes.constant(UNKNOWN, np.float64)])])
    least = nodes.constant(least_divisor(reference.distances), np.float64)
    divisor = nodes.add("Max", [nodes.reduce("ReduceMin", others, [1]), least])
    quotient = nodes.add("Div", [own, divisor])
    unseen = nodes.add("Less", [own, nodes.constant(UNKNOWN / 2, np.float64)])
    result = nodes.add("Where", [unseen, quotient, nodes.constant(UNKNOWN, np.float64)])
    return nodes.cast(nodes.clip(result, 0.0, UNKNOWN, np.float64), np.float32)


def sorted_function(
    reference: Reference, limits: tuple[float, float] | None
) -> Callable[[Traces, NDArray[np.int64]], NDArray[np.floating[Any]]]:
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
    crowds = [candidates_for(traces[low:high]) for low, high in itertools.pairwise(bounds) if high > low]
    count = min(max(crowds), max(1, int(np.diff(bounds).max())))

    def candidates(activations: Traces, number: int) -> NDArray[np.int64]:
        low, high = int(bounds[number]), int(bounds[number + 1])
        scores = (activations - centres[number]) @ products[number]
        scores += bias[low:high]
        if high - low <= count:
            found = np.broadcast_to(np.arange(high - low), scores.shape)
        else:
            found = np.argpartition(scores, high - low - count, axis=1)[:, high - low - count :]
        if found.shape[1] < count:
            found = np.concatenate([found, np.repeat(found[:, :1], count - found.shape[1], axis=1)], axis=1)
        return found + low

    def values(activations: Traces, predicted: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
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
