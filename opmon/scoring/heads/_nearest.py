"""The traces that are nearest to a graph's inputs, among those of their class or of all others."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.graph.monitor_graph import MonitorGraph, Route
from opmon.scoring.graph.routes import FORBIDDEN, codes, forbidding
from opmon.scoring.heads._search import (
    BLOCK,
    Traces,
    candidates_for,
    crowd_of,
    distinct_of,
    greatest_in_blocks,
    joined,
    kept_columns,
    nearest_of,
    positions,
    searched_in_blocks,
    with_norms,
)
from opmon.scoring.reference.distances import crowd
from opmon.scoring.reference.fitted import Reference

_PADDING = np.float32(-3e38)
_Found = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """The traces of one route: ``rows`` in the reference, from ``start`` on in the table of all routes."""

    route: Route
    rows: NDArray[np.int64]
    start: int
    count: int
    """The number of candidates of each input."""
    in_blocks: bool
    """Whether they are searched block by block."""

    @property
    def columns(self) -> int:
        """The number of traces with those that fill the last block."""
        return -(-len(self.rows) // BLOCK) * BLOCK


@dataclass(frozen=True, eq=False)
class Search:
    """The nearest traces of a graph's inputs, class by class.

    Candidates come from one product with the traces of a route, each centred on the mean of its class; the choice among
    them from their differences in float64, over all neurons.
    """

    graph: MonitorGraph
    reference: Reference

    @functools.cached_property
    def parts(self) -> tuple[Part, ...]:
        searched, start = [], 0
        for route in self.graph.routes:
            own = [distinct_of(self.reference, number) for number in route.classes]
            rows = np.concatenate(own)
            wanted = candidates_for(max(crowd_of(self.reference, number) for number in route.classes))
            count = min(wanted, len(rows))
            searched.append(Part(route, rows, start, count, searched_in_blocks(len(rows), count, self.graph.nodes)))
            start += searched[-1].columns
        return tuple(searched)

    @functools.cached_property
    def table(self) -> NDArray[np.int64]:
        """The rows of all parts; the last of each fills up its last block."""
        return np.concatenate([np.pad(part.rows, (0, part.columns - len(part.rows)), "edge") for part in self.parts])

    @functools.cached_property
    def traces(self) -> str:
        return self.graph.nodes.constant(self.reference.traces[self.table])

    @functools.cached_property
    def classes(self) -> str:
        return self.graph.nodes.constant(self.reference.predicted[self.table])

    def own(self) -> list[tuple[list[Route], str, str]]:
        """The distance (float64) of each input to the nearest trace of its class, and which of the table that is.

        Routes that look at as many candidates go together.
        """
        nodes, nearest = self.graph.nodes, []
        for key in sorted({(part.count, part.in_blocks) for part in self.parts}):
            parts = [part for part in self.parts if (part.count, part.in_blocks) == key]
            routes = [part.route for part in parts]
            candidates = self._joined([self._found(part, *self._own_product(part), part.count) for part in parts], 0)[1]
            rows = self.graph.rows(routes)
            activations = nodes.add("Gather", [self.graph.activations, rows], axis=0)
            several = any(len(route.classes) > 1 for route in routes)
            foreign = self.foreign(candidates, rows, "own") if several else None
            nearest.append((routes, *nearest_of(nodes, activations, candidates, self.traces, foreign)))
        return nearest

    def foreign(self, candidates: str, rows: str | None, wanted: str) -> str:
        """Mark candidates that are not of the wanted class: the input's ``own``, or any of the ``others``."""
        nodes = self.graph.nodes
        predicted = self.graph.predicted if rows is None else nodes.add("Gather", [self.graph.predicted, rows])
        theirs = nodes.add("Gather", [self.classes, candidates])
        same = nodes.add("Equal", [theirs, nodes.unsqueeze(predicted, [1])])
        return nodes.add("Not", [same]) if wanted == "own" else same

    def _joined(self, results: Sequence[_Found], axis: int) -> tuple[str, str]:
        """The values and the rows of the table that were found in several parts, all in blocks or none of them."""
        nodes = self.graph.nodes
        values, first, *rest = (joined(nodes, tensors, axis) for tensors in zip(*results, strict=True))
        return values, positions(nodes, first, *rest) if rest else first

    def _own_product(self, part: Part) -> tuple[str, Traces, int]:
        """The inputs of a part and its traces, ready for a product, and which column has the norms."""
        graph, nodes, route = self.graph, self.graph.nodes, part.route
        traces, classes = self.reference.traces[part.rows], self.reference.predicted[part.rows]
        live, count = kept_columns(traces), len(route.classes)
        local = np.searchsorted(np.sort(route.classes), classes)
        local = np.argsort(route.classes)[local]  # where the class stands in the route
        means = [traces[local == i].mean(axis=0, dtype=np.float64) for i in range(count)]
        centres = np.stack(means)[:, live].astype(np.float32)
        matrix = with_norms(traces[:, live] - centres[local])
        moved = graph.routed(route, graph.extended)
        if len(live) < traces.shape[1]:
            moved = nodes.add("Gather", [moved, nodes.constant([*live, traces.shape[1]], np.int64)], axis=1)
        shifts = np.pad(centres, ((0, 0), (0, 1)))  # the column of ones stays
        if count == 1:
            moved = nodes.add("Sub", [moved, nodes.constant(shifts)])
        else:
            own = graph.numbers(route)
            moved = nodes.add("Sub", [moved, nodes.add("Gather", [nodes.constant(shifts), own], axis=0)])
            code = nodes.add("Gather", [nodes.constant(codes(count)), own], axis=0)
            moved = nodes.add("Concat", [moved, code], axis=1)
            matrix = np.concatenate([matrix, forbidding(local, count)], axis=1)
        return moved, matrix, len(live)

    def _found(self, part: Part, moved: str, matrix: Traces, norm: int, count: int) -> _Found:
        """The greatest products: their values, and where in the table they are, or in which blocks and where there."""
        nodes = self.graph.nodes
        if not searched_in_blocks(len(matrix), count, nodes):
            scores = nodes.add("MatMul", [moved, nodes.constant(np.ascontiguousarray(matrix.T))])
            values, places = nodes.top(scores, min(count, len(matrix)))
            return values, nodes.add("Add", [places, nodes.constant(part.start, np.int64)])
        filled = np.zeros((part.columns, matrix.shape[1]), np.float32)
        filled[: len(matrix)] = matrix
        filled[len(matrix) :, norm] = _PADDING
        scores = nodes.add("MatMul", [moved, nodes.constant(np.ascontiguousarray(filled.T))])
        values, blocks, inside = greatest_in_blocks(nodes, scores, part.columns, count)
        return values, nodes.add("Add", [blocks, nodes.constant(part.start // BLOCK, np.int64)]), inside

    def others(self) -> str:
        """The distance (float64) of each input to the nearest trace of any other class.

        All traces are centred on one mean, part by part; the best of all parts are compared again.
        """
        graph, nodes = self.graph, self.graph.nodes
        traces = self.reference.traces[np.concatenate([part.rows for part in self.parts])]
        live = kept_columns(traces)
        centre = traces[:, live].mean(axis=0, dtype=np.float64).astype(np.float32)
        moved = nodes.add("Gather", [graph.extended, nodes.constant([*live, traces.shape[1]], np.int64)], axis=1)
        moved = nodes.add("Sub", [moved, nodes.constant(np.pad(centre, (0, 1)))])
        wanted, values, places = candidates_for(crowd(traces)), [], []
        for part in self.parts:
            inside = np.zeros((graph.columns, len(part.route.classes)), np.float32)
            inside[list(part.route.classes)] = np.eye(len(part.route.classes))
            asked = nodes.add("Gather", [nodes.constant(inside), graph.predicted], axis=0)
            matrix = with_norms(self.reference.traces[part.rows][:, live] - centre)
            matrix = np.concatenate([matrix, inside[self.reference.predicted[part.rows]] * FORBIDDEN], axis=1)
            both = nodes.add("Concat", [moved, asked], axis=1)
            value, place = self._joined([self._found(part, both, matrix, len(live), wanted)], 1)
            values.append(value)
            places.append(place)
        value, position = joined(nodes, values, 1), joined(nodes, places, 1)
        best = nodes.top(value, min(wanted, sum(min(wanted, len(part.rows)) for part in self.parts)))[1]
        candidates = nodes.add("GatherElements", [position, best], axis=1)
        foreign = self.foreign(candidates, None, "others")
        return nearest_of(nodes, graph.activations, candidates, self.traces, foreign)[0]
