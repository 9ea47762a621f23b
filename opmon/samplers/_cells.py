"""Strata of equal draws along a score, and simple random sampling inside them without a sort of the frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.samplers._checks import chunks
from opmon.samplers._proxy import Variable, scores
from opmon.types import Numbers, Positions

BINS = 8192
NONE = BINS
"""The bin of an input that was drawn before."""
PER_STRATUM = 6
"""Draws that a stratum is cut for. 4 to 8 make no difference to the error; below, variances are badly known."""


class Strata(NamedTuple):
    """Consecutive bins of the score: ``of_bin`` gives a bin's stratum, ``sizes`` N_h, ``counts`` n_h."""

    of_bin: NDArray[np.int64]
    sizes: NDArray[np.int64]
    counts: NDArray[np.int64]


def binned(variables: list[Variable], parts: list[Numbers], size: int) -> tuple[NDArray[np.uint16], float, float]:
    """The bin of every input's additive score, and the lowest and highest score that the bins span."""
    bins = np.zeros(size, dtype=np.uint16)
    low, high = sum(float(p.min()) for p in parts), sum(float(p.max()) for p in parts)
    if not variables or high <= low:
        return bins, low, low
    tables = [v.table(p) for v, p in zip(variables, parts, strict=True)]
    scale = (BINS - 1) / (high - low)
    for piece in chunks(size):
        bins[piece] = np.clip((scores(variables, tables, piece) - low) * scale, 0, BINS - 1).astype(np.uint16)
    return bins, low, high


def populations(bins: NDArray[np.uint16], none: int = NONE) -> NDArray[np.int64]:
    """How many inputs every bin below ``none`` holds; that is the bin of those drawn before."""
    counts = np.zeros(none + 1, dtype=np.int64)
    for piece in chunks(len(bins)):
        counts += np.bincount(bins[piece], minlength=none + 1)
    return counts[:none]


def centres(low: float, high: float) -> Numbers:
    """The score in the middle of every bin."""
    return np.asarray(low + (np.arange(BINS) + 0.5) * (high - low) / (BINS - 1))


def strata(population: NDArray[np.int64], density: Numbers, budget: int) -> Strata:
    """Cut the bins where the cumulative density passes multiples of its share, so that strata expect equal draws.

    ``population`` inputs and sampling ``density`` per bin. A bin that holds more than one share stays whole.
    """
    occupied = np.flatnonzero(population)
    inputs, share = population[occupied], (population * density)[occupied]
    mass = np.cumsum(share)
    many = max(budget // PER_STRATUM, 2 if budget >= 4 else 1)
    wanted = np.minimum(((mass - share / 2) / mass[-1] * many).astype(np.int64), many - 1)
    labels = (np.cumsum(np.bincount(wanted, minlength=many) > 0) - 1)[wanted]
    of_bin = np.full(len(population) + 1, -1, dtype=np.int64)
    of_bin[occupied] = labels
    sizes = np.bincount(labels, inputs).astype(np.int64)
    expected = np.bincount(labels, share).astype(np.float64)
    return Strata(of_bin, sizes, allocate(expected, sizes, budget))


def allocate(expected: Numbers, sizes: NDArray[np.int64], budget: int, least: int = 1) -> NDArray[np.int64]:
    """Whole numbers in proportion to ``expected``: at least ``least``, at most the stratum, and ``budget`` in all.

    Each stratum gets a draw, or its inputs would be out of reach: more strata than draws are refused.
    """
    if len(sizes) > budget:
        raise InputError(f"every stratum needs a draw: there are {budget} for {len(sizes)} strata")
    budget = int(min(budget, sizes.sum()))
    quota = expected / expected.sum() * budget
    for _ in range(len(sizes)):
        full = quota >= sizes
        if not full.any() or full.all():
            break
        room = budget - sizes[full].sum()
        quota = np.where(full, sizes, expected / expected[~full].sum() * room)
        if not (quota[~full] > sizes[~full]).any():
            break
    low = np.minimum(least if least * len(sizes) <= budget else 1, sizes)
    counts: NDArray[np.int64] = np.clip(np.floor(quota).astype(np.int64), low, sizes)
    while (short := budget - int(counts.sum())) != 0:
        if short > 0:
            gap = np.where(counts < sizes, quota - counts, -np.inf)
            counts[int(gap.argmax())] += 1
        else:
            gap = np.where(counts > low, counts - quota, -np.inf)
            counts[int(gap.argmax())] -= 1
    return counts


def drawn(bins: NDArray[np.uint16], strata: Strata, rng: np.random.Generator) -> tuple[Positions, NDArray[np.int64]]:
    """Positions drawn at random without replacement inside every stratum, with their strata; in random order.

    Random ranks inside each stratum are drawn first and found in one pass over the frame.
    """
    ranks = [
        np.sort(rng.choice(int(N), int(n), replace=False)) for N, n in zip(strata.sizes, strata.counts, strict=True)
    ]
    members = list(_members(bins, strata, ranks))
    positions = np.concatenate([p for p, _ in members])
    of = np.concatenate([h for _, h in members])
    order = rng.permutation(len(positions))
    return positions[order], of[order]


def _members(
    bins: NDArray[np.uint16], strata: Strata, ranks: list[NDArray[np.int64]]
) -> Iterator[tuple[Positions, NDArray[np.int64]]]:
    many = len(strata.sizes)
    flat = np.concatenate(ranks)
    of = np.repeat(np.arange(many), [len(r) for r in ranks])
    before = np.zeros(many, dtype=np.int64)
    table = (strata.of_bin + 1).astype(np.uint16)
    for part in chunks(len(bins)):
        labels = table[bins[part]]
        count = np.bincount(labels, minlength=many + 1)[1:]
        inside = (flat >= before[of]) & (flat < (before + count)[of])
        if inside.any():
            order = np.argsort(labels, kind="stable")
            first = np.searchsorted(labels[order], np.arange(1, many + 1))
            h = of[inside]
            yield part.start + order[first[h] + flat[inside] - before[h]], h
        before += count
