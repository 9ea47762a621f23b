"""Draws in proportion to a weight, in O(N) time and without a copy of the frame.

Weights are summed in float64 chunk by chunk; a draw finds its chunk first and only then its place inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.samplers._checks import chunks
from opmon.types import Numbers, Positions

FLOOR = 0.01
"""The least weight, relative to the mean weight: every input can be drawn."""

WIDEST = 8.0
"""The largest ratio of two draw probabilities in one class."""


@dataclass(frozen=True, eq=False)
class Weights:
    """``w_i = max(values_i, floor)`` with its sum per chunk; all equal where every value is zero."""

    values: Numbers
    floor: float
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, values: Numbers, floor: float = FLOOR) -> Weights:
        total = sum(float(values[part].sum(dtype=np.float64)) for part in chunks(len(values)))
        floor = floor * total / len(values) if total > 0 else 1.0
        sums = np.array([np.maximum(values[part], floor, dtype=np.float64).sum() for part in chunks(len(values))])
        return cls(values, floor, sums)

    @property
    def total(self) -> float:
        return float(self.sums.sum())

    def of_chunk(self, part: slice) -> NDArray[np.float64]:
        return np.maximum(self.values[part], self.floor, dtype=np.float64)

    def at(self, positions: Positions) -> NDArray[np.float64]:
        return np.maximum(self.values[positions], self.floor, dtype=np.float64)

    def draw(self, count: int, rng: np.random.Generator) -> Positions:
        """``count`` draws with replacement, each in proportion to the weight."""
        ends = np.cumsum(self.sums)
        target = rng.random(count) * ends[-1]
        chunk = np.minimum(np.searchsorted(ends, target, side="right"), len(ends) - 1)
        inside = target - (ends[chunk] - self.sums[chunk])
        positions = np.empty(count, dtype=np.int64)
        for number, part in enumerate(chunks(len(self.values))):
            here = np.flatnonzero(chunk == number)
            if len(here):
                places = np.searchsorted(np.cumsum(self.of_chunk(part)), inside[here], side="right")
                positions[here] = part.start + np.minimum(places, part.stop - part.start - 1)
        return positions

    def draw_without_replacement(self, count: int, rng: np.random.Generator) -> Positions:
        """``count`` inputs, one after another in proportion to the weight among those that are left.

        Drawing with replacement and passing over repeats has that law; where most draws would be repeats, the rest
        follows by the smallest exponential keys ``e_i / w_i`` (Efraimidis and Spirakis, 2006). Taking any other inputs
        away in between leaves the law of those to come as it is. There must be ``count`` inputs with a weight.
        """
        drawn = self.draw(2 * count, rng)
        _, first = np.unique(drawn, return_index=True)
        distinct = drawn[np.sort(first)][:count]
        if len(distinct) == count:
            return distinct
        return np.concatenate((distinct, self._smallest_keys(count - len(distinct), distinct, rng)))

    def _smallest_keys(self, count: int, taken: Positions, rng: np.random.Generator) -> Positions:
        best, keys = np.empty(0, dtype=np.int64), np.empty(0)
        for part in chunks(len(self.values)):
            weight = self.of_chunk(part)
            weight[taken[(taken >= part.start) & (taken < part.stop)] - part.start] = 0.0
            with np.errstate(divide="ignore"):
                key = rng.standard_exponential(len(weight)) / weight
            near = np.flatnonzero(key < (keys[-1] if len(keys) == count else np.inf))
            best, keys = np.concatenate((best, part.start + near)), np.concatenate((keys, key[near]))
            order = np.argsort(keys)[:count]
            best, keys = best[order], keys[order]
        return best


@dataclass(frozen=True, eq=False)
class Mixture:
    """The draw probability ``p_i = (1 − λ) w_i / Σw + λ / N``: in proportion to the weight, or uniform."""

    weights: Weights
    defensive: float

    @property
    def size(self) -> int:
        return len(self.weights.values)

    def _of_weight(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        return (1 - self.defensive) * weight / self.weights.total + self.defensive / self.size

    def at(self, positions: Positions) -> NDArray[np.float64]:
        return self._of_weight(self.weights.at(positions))

    def by_chunk(self) -> Iterator[NDArray[np.float64]]:
        for part in chunks(self.size):
            yield self._of_weight(self.weights.of_chunk(part))

    def draw(self, count: int, rng: np.random.Generator) -> Positions:
        uniform = rng.integers(0, self.size, count)
        proportional = self.weights.draw(count, rng)
        return np.where(rng.random(count) < self.defensive, uniform, proportional)


@dataclass(frozen=True, eq=False)
class ProbabilityClasses:
    """The frame cut into classes of similar draw probability, each with about the same expected number of draws.

    An interval needs them: they say how much of the frame the lightly sampled bulk is. Within a class the largest
    probability is at most ``WIDEST`` times the smallest, so that its draws speak for all of it; a class that is hardly
    ever drawn speaks for nothing, and the interval knows. ``sizes`` counts the inputs of each class, from the least to
    the most probable; no class is empty.
    """

    edges: NDArray[np.float64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, mixture: Mixture, count: int, bins: int = 4096) -> ProbabilityClasses:
        low, high = np.inf, -np.inf
        for p in mixture.by_chunk():
            low, high = min(low, float(p.min())), max(high, float(p.max()))
        if not high > low * (1 + 1e-9):
            return cls(np.empty(0), np.array([mixture.size]))
        scale = bins / np.log(high / low)
        number, mass = np.zeros(bins, dtype=np.int64), np.zeros(bins)
        for p in mixture.by_chunk():
            at = np.clip((np.log(p / low) * scale).astype(np.int64), 0, bins - 1)
            number += np.bincount(at, minlength=bins)
            mass += np.bincount(at, weights=p, minlength=bins)
        filled = np.flatnonzero(number)
        first = _class_starts(np.cumsum(mass[filled]) * count, filled / scale)
        return cls(low * np.exp(filled[first[1:]] / scale), np.add.reduceat(number[filled], first))

    def at(self, probability: NDArray[np.float64]) -> NDArray[np.int64]:
        """The class of each probability."""
        return np.searchsorted(self.edges, probability, side="right").astype(np.int64)


def _class_starts(expected: NDArray[np.float64], log: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first bin of each class: it ends with one unit of ``expected`` draws or where ``log p`` has grown too far."""
    starts, end = [0], 0
    while end < len(log):
        before = expected[starts[-1] - 1] if starts[-1] else 0.0
        end = min(
            int(np.searchsorted(expected, before + 1 - 1e-9)) + 1,
            int(np.searchsorted(log, log[starts[-1]] + np.log(WIDEST), side="left")),
        )
        starts.append(end)
    if len(starts) > 2 and expected[-1] - expected[starts[-2] - 1] < 0.5:
        starts.pop(-2)
    return np.array(starts[:-1])


def class_count(budget: int) -> int:
    """The number of classes that an interval can use: about ten draws in each, ten classes at most."""
    return max(1, min(10, budget // 10))
