"""Strata of one auxiliary variable, and how many draws each gets.

``Strata.by_kmeans`` solves one-dimensional k-means exactly on the bins of a fine histogram, by dynamic programming with
the divide-and-conquer monotonicity of the optimum (Wang and Song, The R Journal 3, 2011; Grønlund et al., 2017):
deterministic, O(N + k B log B) for B bins, with a lower sum of squares than Lloyd's iterations from one start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opmon.samplers._checks import chunks
from opmon.types import Numbers, Positions

BINS = 4096
COARSE = 0.01
"""Bins are too coarse where the sum of squares inside them is more than this share of that inside the strata."""
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
    def by_kmeans(cls, values: Numbers, count: int) -> Strata:
        """At most ``count`` strata, ascending in the variable; fewer where it has fewer distinct values."""
        low, high = float(values.min()), float(values.max())
        if not high > low:
            whole = np.array([len(values)])
            return cls(np.arange(len(values)), whole, low * whole, np.zeros(1))
        bins, columns = _binned(values, low, high, None)
        starts = _best_cuts(*columns.filled, count)
        if columns.inside(np.arange(len(columns.filled.number))) > COARSE * columns.inside(starts):
            bins, columns = _binned(values, low, high, _even(values, low, high))
            starts = _best_cuts(*columns.filled, count)
        label_of_bin = np.zeros(BINS, dtype=np.uint8)
        label_of_bin[np.flatnonzero(columns.number)[starts[1:]]] = 1
        label_of_bin = np.cumsum(label_of_bin, dtype=np.uint8)
        labels = np.empty(len(values), dtype=np.uint8)
        for part in chunks(len(values)):
            labels[part] = label_of_bin[bins[part]]
        n, mean, square = (np.add.reduceat(column, starts) for column in columns.filled)
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


class _Columns(NamedTuple):
    """Per bin: how many values, their sum and sum of squares, on a scale from 0 to 1."""

    number: NDArray[np.float64]
    total: NDArray[np.float64]
    square: NDArray[np.float64]

    @property
    def filled(self) -> _Columns:
        """The values of bins that hold something."""
        return _Columns(*(column[self.number > 0] for column in self))

    def inside(self, starts: NDArray[np.int64]) -> float:
        """The sum of squares about the means of the runs of filled bins that begin at ``starts``."""
        n, s, q = (np.add.reduceat(column, starts) for column in self.filled)
        return float(np.maximum(q - s * s / n, 0).sum())


Scale = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Knots of a piecewise linear map from the unit interval to bins."""


def _even(values: Numbers, low: float, high: float) -> Scale:
    """Half of the bins by width, half by how many values there are: ``bin = B (u + F(u)) / 2`` with ``F`` the share
    of values up to ``u``, read off at 64 quantiles. Neither tails nor clusters are then coarse."""
    glimpse = np.sort(np.asarray(values[:: max(len(values) // GLIMPSE, 1)], dtype=np.float64))
    shares = np.linspace(0, 1, 65)
    quantiles = (glimpse[(shares * (len(glimpse) - 1)).astype(np.int64)] - low) / (high - low)
    knots, last = np.unique(np.r_[0.0, quantiles, 1.0][::-1], return_index=True)
    share = np.r_[0.0, shares, 1.0][::-1][last]
    return knots, BINS * (knots + share) / 2


def _binned(values: Numbers, low: float, high: float, scale: Scale | None) -> tuple[NDArray[np.uint16], _Columns]:
    """The bin of every value, and what the bins hold; they are equally wide, or as ``scale`` says."""
    bins = np.empty(len(values), dtype=np.uint16)
    number, total, square = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    for part in chunks(len(values)):
        unit = (values[part].astype(np.float64) - low) / (high - low)
        place = unit * BINS if scale is None else np.interp(unit, *scale)
        bins[part] = at = np.minimum(place, BINS - 1).astype(np.uint16)
        number += np.bincount(at, minlength=BINS)
        total += np.bincount(at, weights=unit, minlength=BINS)
        square += np.bincount(at, weights=unit * unit, minlength=BINS)
    return bins, _Columns(number, total, square)


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


def proportional(
    shares: NDArray[np.float64], total: int, most: NDArray[np.int64], least: int | NDArray[np.int64] = 0
) -> NDArray[np.int64]:
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
