"""Nearest neighbours among activation traces, exact: candidates by float32 products, the choice in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 24
"""The most products that are held at once."""
_CACHED = 1 << 19
"""The number of products that stay in a core's cache."""


def nearest(
    queries: NDArray[np.float32], traces: NDArray[np.float32], own: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The Euclidean distance of each query to its nearest trace, and which trace that is.

    Where the queries are the traces numbered ``own``, none is its own neighbour. The trace with the
    greatest ``q·t − ‖t‖²/2`` is the nearest; in float32 that is wrong by up to a bound, and all traces within the
    bound of the best are compared again by their differences in float64.
    """
    centre = traces.mean(axis=0, dtype=np.float64)
    centred = (traces - centre).astype(np.float32)
    squares = np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
    longest = float(np.sqrt(squares.max(initial=0.0)))
    half = (squares / 2).astype(np.float32)
    distance, index = np.empty(len(queries)), np.empty(len(queries), np.int64)
    step = max(1, BLOCK // max(1, len(traces)))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        moved = (block - centre).astype(np.float32)
        scores = moved @ centred.T
        scores -= half
        if own is not None:
            scores[np.arange(len(block)), own[start : start + step]] = -np.inf
        length = np.sqrt(np.einsum("ij,ij->i", moved, moved, dtype=np.float64))
        bound = 2 * (traces.shape[1] + 4) * np.finfo(np.float32).eps * (length + longest) * longest
        least = (scores.max(axis=1) - bound).astype(np.float32)
        row, candidate = np.nonzero(scores >= least[:, None])
        _choose(block, traces, row, candidate, distance[start : start + step], index[start : start + step])
    return distance, index


def _choose(
    queries: NDArray[np.float32],
    traces: NDArray[np.float32],
    row: NDArray[np.int64],
    candidate: NDArray[np.int64],
    distance: NDArray[np.float64],
    index: NDArray[np.int64],
) -> None:
    """The nearest of each row's candidates; the first of those that are equally near."""
    squares = np.empty(len(row))
    step = max(1, BLOCK // max(1, traces.shape[1] * 8))
    for start in range(0, len(row), step):
        part = slice(start, start + step)
        difference = queries[row[part]].astype(np.float64) - traces[candidate[part]]
        squares[part] = np.einsum("ij,ij->i", difference, difference)
    order = np.lexsort((candidate, squares, row))
    first = order[np.searchsorted(row[order], np.arange(len(queries)))]
    distance[:], index[:] = np.sqrt(squares[first]), candidate[first]


def distances_to_others(traces: NDArray[np.float32], predicted: NDArray[np.int64]) -> NDArray[np.float64]:
    """``dist_b``: the distance of each trace to the nearest one predicted as another class; inf without one."""
    distances = np.full(len(traces), np.inf)
    for number in np.unique(predicted):
        own = predicted == number
        if not own.all():
            distances[own] = nearest(traces[own], traces[~own])[0]
    return distances


def least_divisor(distances: NDArray[np.float64]) -> float:
    """A millionth of the median of ``dist_b``: what divides where two classes share a trace and ``dist_b`` is zero."""
    usual = distances[np.isfinite(distances) & (distances > 0)]
    return max(1e-6 * float(np.median(usual)), 1e-30) if len(usual) else 1e-12


def floored(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """``dist_b`` as a divisor; infinite where there is no other class: the quotient is then 0."""
    return np.maximum(distances, least_divisor(distances))


def distinct(traces: NDArray[np.float32]) -> NDArray[np.int64]:
    """The first of each set of equal traces, in order."""
    whole = np.ascontiguousarray(traces + np.float32(0))  # minus zero is zero
    rows = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1])))[:, 0]
    return np.sort(np.unique(rows, return_index=True)[1])


def crowd(traces: NDArray[np.float32], asked: int = 2000) -> int:
    """The most traces that are so near to one of them that float32 products cannot tell which is nearest."""
    centred = (traces - traces.mean(axis=0, dtype=np.float64)).astype(np.float32)
    squares = np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
    unclear = 16 * float(np.finfo(np.float32).eps) * float(squares.max(initial=0.0))
    half, least = (squares / 2).astype(np.float32), ((squares - unclear) / 2).astype(np.float32)
    queries = np.linspace(0, len(traces) - 1, min(asked, len(traces))).astype(np.int64)
    most, turned = 1, np.ascontiguousarray(centred.T)
    for part in np.array_split(queries, max(1, len(queries) * len(traces) // _CACHED + 1)):
        near = centred[part] @ turned - half > least[part, None]  # ‖q − t‖² < unclear
        most = max(most, int(np.count_nonzero(near, axis=1).max(initial=1)))
    return most
