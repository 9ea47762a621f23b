"""The arithmetic of LSA in a graph."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.graph.monitor_graph import UNKNOWN, MonitorGraph, Route
from opmon.scoring.graph.nodes import Nodes
from opmon.scoring.graph.routes import codes, forbidding
from opmon.scoring.reference.densities import Density

_FAR = 1e15
"""The square of what is farther out is beyond float32."""


@dataclass(frozen=True, eq=False)
class Surprises:
    """``−log f̂`` of a graph's inputs, class by class: whitened in float64, one product with the whitened traces.

    ``−log f̂ = constant + ‖z‖²/2 − log Σ_i exp(z·z_i − ‖z_i‖²/2)`` with ``z`` the whitened input and ``z_i`` the traces.
    """

    graph: MonitorGraph
    kept: NDArray[np.bool_]
    fitted: Mapping[int, Density]

    def nodes(self) -> str:
        """float32, one for each input."""
        graph, nodes, routes = self.graph, self.graph.nodes, self.graph.routes
        masses, squares = [], []
        for route in routes:
            z = nodes.clip(self._whitened(route), -_FAR, _FAR, np.float64)
            squares.append(nodes.reduce("ReduceSumSquare", z, [1]))
            masses.append(self._mass(route, nodes.cast(z, np.float32)))
        square, mass = _joined(nodes, squares), _joined(nodes, masses)
        half = nodes.add("Mul", [square, nodes.constant(0.5, np.float64)])
        surprises = nodes.add("Add", [nodes.add("Sub", [half, nodes.cast(mass, np.float64)]), self._constants()])
        surprises = nodes.cast(nodes.clip(surprises, -UNKNOWN, UNKNOWN, np.float64), np.float32)
        return graph.unrouted(routes, surprises)

    def _constants(self) -> str:
        """The constant of each input's class, less the half that the column of ones adds to ``‖z‖²/2``."""
        nodes, routes = self.graph.nodes, self.graph.routes
        values = np.zeros(max(1, self.graph.columns))
        for number, density in self.fitted.items():
            values[number] = density.constant - 0.5
        if routes[0].rows is None:
            return nodes.constant(values[0], np.float64)
        rows = nodes.add("Gather", [self.graph.predicted, self.graph.rows(routes)])
        return nodes.add("Gather", [nodes.constant(values), rows])

    @functools.cached_property
    def _wide(self) -> str:
        """The kept activations in float64, with a column of ones."""
        nodes, used = self.graph.nodes, self.graph.extended
        if not self.kept.all():
            chosen = np.append(np.flatnonzero(self.kept), len(self.kept))
            used = nodes.add("Gather", [used, nodes.constant(chosen, np.int64)], axis=1)
        return nodes.cast(used, np.float64)

    def _whitened(self, route: Route) -> str:
        """``z`` of a route's inputs, with a column of ones."""
        graph, nodes = self.graph, self.graph.nodes
        rows, own = graph.routed(route, self._wide), [self.fitted[number] for number in route.classes]
        if len(own) == 1:
            return nodes.add("MatMul", [rows, nodes.constant(_affine(own[0]))])
        number = graph.numbers(route)
        if all(density.basis is own[0].basis for density in own):
            means = np.pad(np.stack([density.mean for density in own]), ((0, 0), (0, 1)))
            centred = nodes.add("Sub", [rows, nodes.add("Gather", [nodes.constant(means), number], axis=0)])
            size = len(own[0].mean)
            turned = np.eye(size + 1)
            turned[:size, :size] = own[0].basis
            scales = np.pad(np.stack([density.scale for density in own]), ((0, 0), (0, 1)), constant_values=1)
            turned_rows = nodes.add("MatMul", [centred, nodes.constant(turned)])
            return nodes.add("Mul", [turned_rows, nodes.add("Gather", [nodes.constant(scales), number], axis=0)])
        return self._chosen(rows, number, own)

    def _chosen(self, rows: str, number: str, own: Sequence[Density]) -> str:
        """By the whitening of every class of the route, of which each row takes that of its own class."""
        nodes, width = self.graph.nodes, len(own[0].mean) + 1
        matrix = np.concatenate([_affine(density) for density in own], axis=1)
        table = nodes.add("MatMul", [rows, nodes.constant(matrix)])
        table = nodes.add("Reshape", [table, nodes.constant([-1, width], np.int64)])
        zero, one = (nodes.constant(i, np.int64) for i in (0, 1))
        length = nodes.squeeze(nodes.add("Shape", [number]), [0])
        first = nodes.add("Mul", [nodes.add("Range", [zero, length, one]), nodes.constant(len(own), np.int64)])
        return nodes.add("Gather", [table, nodes.add("Add", [first, number])], axis=0)

    def _mass(self, route: Route, z: str) -> str:
        """``log Σ_i exp(z·z_i − ‖z_i‖²/2)`` over the traces of each input's class."""
        nodes, own = self.graph.nodes, [self.fitted[number] for number in route.classes]
        matrices = [_exponents(density) for density in own]
        if len(own) == 1:
            return _log_sum(nodes, z, matrices[0])
        number = self.graph.numbers(route)
        local = np.repeat(np.arange(len(own)), [len(matrix) for matrix in matrices])
        matrix = np.concatenate([np.concatenate(matrices), forbidding(local, len(own))], axis=1)
        code = nodes.add("Gather", [nodes.constant(codes(len(own))), number], axis=0)
        first = nodes.constant(np.searchsorted(local, np.arange(len(own))))
        column = nodes.unsqueeze(nodes.add("Gather", [first, number]), [1])
        return _log_sum(nodes, nodes.add("Concat", [z, code], axis=1), matrix, column)


def _affine(density: Density) -> NDArray[np.float64]:
    """The matrix that maps activations with a one to ``z`` with a one."""
    size = len(density.mean)
    matrix = np.eye(size + 1)
    matrix[:size, :size] = density.whitening
    matrix[size, :size] = -density.mean @ density.whitening
    return matrix


def _exponents(density: Density) -> NDArray[np.float32]:
    """The traces of a class and ``−‖z_i‖²/2``; those in the middle first, whose exponents are of moderate size."""
    squares = np.einsum("ij,ij->i", density.points, density.points)
    order = np.argsort(squares, kind="stable")
    return np.concatenate([density.points[order], -squares[order, None] / 2], axis=1).astype(np.float32)


def _log_sum(nodes: Nodes, z: str, matrix: NDArray[np.float32], column: str | None = None) -> str:
    """``log Σ exp`` of the products of each row, as ``e_c − LogSoftmax(e)_c`` where c is ``column``, else the first.

    ONNX Runtime does max, exp and sum in one pass there, which is quicker than the four operators written out, and much
    quicker than its ReduceLogSumExp.
    """
    exponents = nodes.add("MatMul", [z, nodes.constant(np.ascontiguousarray(matrix.T))])
    shares = nodes.add("LogSoftmax", [exponents], axis=1)
    if column is None:
        first = nodes.constant(0, np.int64)
        return nodes.add("Sub", [nodes.add("Gather", [tensor, first], axis=1) for tensor in (exponents, shares)])
    pair = [nodes.add("GatherElements", [tensor, column], axis=1) for tensor in (exponents, shares)]
    return nodes.squeeze(nodes.add("Sub", pair), [1])


def _joined(nodes: Nodes, tensors: Sequence[str]) -> str:
    return tensors[0] if len(tensors) == 1 else nodes.add("Concat", tensors, axis=0)
