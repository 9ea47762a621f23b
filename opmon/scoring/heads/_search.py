"""Looking for the nearest traces in a graph: candidates by one product, the choice among them in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.graph.nodes import Nodes
from opmon.scoring.reference.distances import crowd, distinct
from opmon.scoring.reference.fitted import Reference

Traces = NDArray[np.float32]
BLOCK = 64
FEWEST, MOST = 3, 64
"""The fewest and the most of the apparently nearest traces that are compared again: two repair float32, and where
traces are crowded it takes two more than crowd together."""
_COUNTS = np.array([FEWEST, 8, 16, 32, MOST])


def with_norms(centred: Traces) -> Traces:
    """A column more, −‖t‖²/2: its product with a one makes ``q·t − ‖t‖²/2``, which is greatest for the nearest."""
    norms = -np.einsum("ij,ij->i", centred, centred, dtype=np.float64) / 2
    return np.concatenate([centred, norms[:, None].astype(np.float32)], axis=1)


def searched_in_blocks(traces: int, count: int, nodes: Nodes) -> bool:
    """Whether the ``count`` greatest of so many are found quicker block by block."""
    return traces >= 4 * BLOCK * count and nodes.opset >= 12  # GatherND has batches since 12


def greatest_in_blocks(nodes: Nodes, scores: str, columns: int, count: int) -> tuple[str, str, str]:
    """The ``count`` greatest of each row of float32 [inputs, columns], whole blocks: see :func:`positions`.

    They are looked for in the ``count`` blocks that have the greatest maxima, where they must be: maxima of blocks are
    found several times as fast as TopK reads all of it. Gives the values, the blocks, and where in the blocks they are.
    """
    parts = nodes.add("Reshape", [scores, nodes.constant([0, columns // BLOCK, BLOCK], np.int64)])
    _, blocks = nodes.top(nodes.reduce("ReduceMax", parts, [2]), count)
    searched = nodes.add("GatherND", [parts, nodes.unsqueeze(blocks, [2])], batch_dims=1)
    flat = nodes.add("Reshape", [searched, nodes.constant([0, count * BLOCK], np.int64)])
    values, inside = nodes.top(flat, count)
    return values, blocks, inside


def positions(nodes: Nodes, blocks: str, inside: str) -> str:
    """The columns of what :func:`greatest_in_blocks` found."""
    width = nodes.constant(BLOCK, np.int64)
    block = nodes.add("GatherElements", [blocks, nodes.add("Div", [inside, width])], axis=1)
    return nodes.add("Add", [nodes.add("Mul", [block, width]), nodes.add("Mod", [inside, width])])


def nearest_of(
    nodes: Nodes, activations: str, candidates: str, traces: str, foreign: str | None = None
) -> tuple[str, str]:
    """The distance (float64) of each row of ``activations`` to the nearest of its candidates, and which trace that is.

    ``traces`` are all neurons of all traces; a candidate that is ``foreign`` (bool) is no candidate.
    """
    near = nodes.cast(nodes.add("Gather", [traces, candidates], axis=0), np.float64)
    difference = nodes.add("Sub", [near, nodes.cast(nodes.unsqueeze(activations, [1]), np.float64)])
    squares = nodes.reduce("ReduceSumSquare", difference, [2])
    if foreign is not None:
        squares = nodes.add("Where", [foreign, nodes.constant(1e300, np.float64), squares])
    best = nodes.add("ArgMin", [squares], axis=1, keepdims=1)
    which = nodes.squeeze(nodes.add("GatherElements", [candidates, best], axis=1), [1])
    square = nodes.squeeze(nodes.add("GatherElements", [squares, best], axis=1), [1])
    return nodes.add("Sqrt", [square]), which


def kept_columns(traces: Traces) -> NDArray[np.int64]:
    """The neurons that are not the same in all traces; one at least."""
    live = np.flatnonzero(traces.min(axis=0) != traces.max(axis=0))
    return live if len(live) else np.arange(1)


def joined(nodes: Nodes, tensors: Sequence[str], axis: int) -> str:
    return tensors[0] if len(tensors) == 1 else nodes.add("Concat", tensors, axis=axis)


def candidates_for(crowded: int) -> int:
    """The number of candidates that is enough where so many traces crowd together: one of few, so that routes agree."""
    enough = np.flatnonzero(min(crowded + 2, MOST) <= _COUNTS)
    return int(_COUNTS[enough[0]])


def crowd_of(reference: Reference, number: int) -> int:
    """The most traces of a class that crowd together."""
    crowded = reference.crowds.get(number)
    return crowd(reference.traces[distinct_of(reference, number)]) if crowded is None else crowded


def distinct_of(reference: Reference, number: int) -> NDArray[np.int64]:
    """The traces of a class, each value once: equal ones have equal distances, and would only crowd out others."""
    rows = reference.of_class(number)
    return rows[distinct(reference.traces[rows])] if len(rows) else rows
