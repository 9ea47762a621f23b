"""The arithmetic of DSA in a graph."""

from __future__ import annotations

import itertools

import numpy as np

from opmon.scoring.graph.monitor_graph import UNKNOWN, MonitorGraph
from opmon.scoring.heads._nearest import Search
from opmon.scoring.heads._search import joined
from opmon.scoring.reference.distances import floored, least_divisor
from opmon.scoring.reference.fitted import Reference


def from_reference(graph: MonitorGraph, reference: Reference) -> str:
    """DSA with the second distance taken from the nearest trace."""
    nodes, search = graph.nodes, Search(graph, reference)
    divisors = nodes.constant(floored(reference.distances)[search.table])
    routes, quotients = [], []
    for some, distance, which in search.own():
        routes += some
        quotient = nodes.add("Div", [distance, nodes.add("Gather", [divisors, which])])
        quotients.append(nodes.cast(nodes.clip(quotient, 0.0, UNKNOWN, np.float64), np.float32))
    return graph.unrouted(routes, joined(nodes, quotients, 0))


def from_input(graph: MonitorGraph, reference: Reference) -> str:
    """DSA with both distances taken from the input: its own class against the nearest of all others."""
    nodes, search = graph.nodes, Search(graph, reference)
    pairs = search.own()
    distances = joined(nodes, [distance for _, distance, _ in pairs], 0)
    own = graph.unrouted(list(itertools.chain.from_iterable(some for some, _, _ in pairs)), distances, np.float64)
    least = nodes.constant(least_divisor(reference.distances), np.float64)
    quotient = nodes.add("Div", [own, nodes.add("Max", [search.others(), least])])
    unseen = nodes.add("Less", [own, nodes.constant(UNKNOWN / 2, np.float64)])
    result = nodes.add("Where", [unseen, quotient, nodes.constant(UNKNOWN, np.float64)])
    return nodes.cast(nodes.clip(result, 0.0, UNKNOWN, np.float64), np.float32)
