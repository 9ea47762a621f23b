"""Strata of one auxiliary variable, and how many draws each gets.

``Strata.by_kmeans`` solves one-dimensional k-means exactly on the bins of a fine histogram, by dynamic programming with
the divide-and-conquer monotonicity of the optimum (Wang and Song, The R Journal 3, 2011; Grønlund et al., 2017):
deterministic, O(N + k B log B) for B bins, with a lower sum of squares than Lloyd's iterations from one start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.samplers.core import chunks
from opmon.types import Floats, Positions

BINS = 4096
CLUMPED = 1 / 32
"""Where one of the equally wide bins holds more than this share of the inputs, a long tail has made them too coarse."""
GLIMPSE = 1 << 16
"""Values looked at to find where most of them are."""
Cost = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Strata:
    """A partition of the frame: ``members`` holds the positions stratum by stratum, ``sizes`` how many each has.

    ``sums`` and ``spreads`` are the sum and the standard deviation of the variable in each stratum.
    """

    members: Positions
    sizes: NDArray[np.int64]
    sums: NDArray[np.float64]
    spreads: NDArray[np.float64]

    @classmethod
    def by_kmeans(cls, values: Floats, count: int) -> Strata:
        """At most ``count`` strata, ascending in the variable; fewer where it has fewer distinct values."""
        low, high = float(values.min()), float(values.max())
        if not high > low:
            whole = np.array([len(values)])
            return cls(np.arange(len(values)), whole, low * whole, np.zeros(1))
        bins, number, total, square = _binned(values, low, high, None)
        if number.max() > CLUMPED * len(values):
            bins, number, total, square = _binned(values, low, high, _edges(values, low, high))
        filled = number > 0
        starts = _best_cuts(number[filled], total[filled], square[filled], count)
        label_of_bin = np.zeros(BINS, dtype=np.uint8)
        label_of_bin[np.flatnonzero(filled)[starts[1:]]] = 1
        label_of_bin = np.cumsum(label_of_bin, dtype=np.uint8)
        labels = np.empty(len(values), dtype=np.uint8)
        for part in chunks(len(values)):
            labels[part] = label_of_bin[bins[part]]
        n, mean, square = (np.add.reduceat(column[filled], starts) for column in (number, total, square))
        mean, square = mean / n, square / n
        spreads = (high - low) * np.sqrt(np.maximum(square - mean**2, 0))
        sizes = n.astype(np.int64)
        return cls(np.argsort(labels, kind="stable"), sizes, n * (low + (high - low) * mean), spreads)

    @property
    def count(self) -> int:
        return len(self.sizes)

    def draw(self, stratum: int, count: int, rng: np.random.Generator) -> Positions:
        """``count`` members of one stratum without replacement, in random order."""
        start = int(self.sizes[:stratum].sum())
        size = int(self.sizes[stratum])
        return self.members[start + rng.choice(size, count, replace=False, shuffle=True)]


def _edges(values: Floats, low: float, high: float) -> NDArray[np.float64]:
    """Where bins begin so that neither the tails nor the middle is coarse: equal widths and equal counts together."""
    glimpse = np.sort(np.asarray(values[:: max(len(values) // GLIMPSE, 1)], dtype=np.float64))
    counts = glimpse[np.linspace(0, len(glimpse) - 1, BINS // 2).astype(np.int64)]
    both = np.union1d(np.linspace(low, high, BINS // 2)[1:-1], counts)
    return np.asarray((both - low) / (high - low))


def _binned(
    values: Floats, low: float, high: float, edges: NDArray[np.float64] | None
) -> tuple[NDArray[np.uint16], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The bin of every value; per bin how many there are, their sum and sum of squares, on a scale from 0 to 1.

    Bins are equally wide, or lie between ``edges``.
    """
    bins = np.empty(len(values), dtype=np.uint16)
    number, total, square = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    for part in chunks(len(values)):
        unit = (values[part].astype(np.float64) - low) / (high - low)
        found = unit * BINS if edges is None else np.searchsorted(edges, unit, side="right")
        bins[part] = at = np.minimum(found, BINS - 1).astype(np.uint16)
        number += np.bincount(at, minlength=BINS)
        total += np.bincount(at, weights=unit, minlength=BINS)
        square += np.bincount(at, weights=unit * unit, minlength=BINS)
    return bins, number, total, square


def _best_cuts(
    number: NDArray[np.float64], total: NDArray[np.float64], square: NDArray[np.float64], count: int
) -> NDArray[np.int64]:
    """The first bin of each of (at most) ``count`` runs of bins that together have the least sum of squares."""
    size = len(number)
    count = min(count, size)
    n, s, q = (np.concatenate(([0.0], np.cumsum(column))) for column in (number, total, square))

    def cost(first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sum of squares of the bins ``first..last-1`` about their mean."""
        return np.asarray(q[last] - q[first] - (s[last] - s[first]) ** 2 / (n[last] - n[first]))

    best = np.full(size + 1, np.inf)
    best[1:] = cost(np.zeros(size, dtype=np.int64), np.arange(1, size + 1))
    choices = []
    for layer in range(1, count):
        best, chosen = _next_layer(best, cost, layer)
        choices.append(chosen)
    starts = []
    end = size
    for chosen in reversed(choices):
        end = int(chosen[end])
        starts.append(end)
    return np.array([0, *reversed(starts)], dtype=np.int64)


def _next_layer(previous: NDArray[np.float64], cost: Cost, layer: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """``next[e] = min_t previous[t] + cost(t, e)`` and the minimising ``t``, which never falls as ``e`` grows.

    Level by level, from far apart to neighbours: each end is searched between the solutions of those around it.
    """
    size = len(previous) - 1
    best, chosen = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
    ends = np.arange(layer + 1, size + 1)
    stride = 1 << (len(ends).bit_length() - 1)
    while stride:
        at = np.arange(stride - 1, len(ends), 2 * stride)
        here = ends[at]
        low = np.where(at >= stride, chosen[ends[at - stride]], layer)
        beyond = at + stride >= len(ends)
        after = chosen[ends[np.where(beyond, at, at + stride)]]
        high = np.where(beyond, here - 1, np.minimum(after, here - 1))
        best[here], chosen[here] = _solve(previous, cost, here, low, high)
        stride //= 2
    return best, chosen


def _solve(
    previous: NDArray[np.float64], cost: Cost, ends: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each end the least ``previous[t] + cost(t, end)`` over ``low <= t <= high``, and its first ``t``."""
    lengths = high - low + 1
    firsts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    splits = np.arange(int(lengths.sum())) + np.repeat(low - firsts, lengths)
    values = previous[splits] + cost(splits, np.repeat(ends, lengths))
    best = np.minimum.reduceat(values, firsts)
    hit = np.flatnonzero(values == np.repeat(best, lengths))
    return best, splits[hit[np.searchsorted(hit, firsts)]]


def proportional(shares: NDArray[np.float64], total: int, most: NDArray[np.int64], least: int = 0) -> NDArray[np.int64]:
    """Whole numbers in proportion to ``shares`` that add up to ``total``, each between ``least`` and its ``most``.

    Shares that would pass a limit are held at it and the rest is divided again; what rounding leaves goes to the
    largest fractions.
    """
    low = np.minimum(least, most)
    total = min(max(total, int(low.sum())), int(most.sum()))
    shares = shares if shares.sum() > 0 else most.astype(np.float64)
    shares = np.maximum(shares / shares.max(), 1e-12)
    scale_low, scale_high = 0.0, float((most / shares).max())
    for _ in range(100):
        scale = (scale_low + scale_high) / 2
        enough = np.clip(scale * shares, low, most).sum() >= total
        scale_low, scale_high = (scale_low, scale) if enough else (scale, scale_high)
    exact = np.clip(scale_high * shares, low, most)
    counts = np.floor(exact + 1e-9).astype(np.int64)
    for _ in range(total - int(counts.sum())):
        counts[np.argmax(np.where(counts < most, exact - counts, -np.inf))] += 1
    return counts
