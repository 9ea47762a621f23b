"""Strata along what a measure's linearised value is likely to be: how the adaptive sampler aims at a measure.

Bins are signed and logarithmic, 64 to a factor of two, as the chances of a rare class are; each kind of input has its
own. Nothing is sorted, and nothing of the frame's length is made but two bytes an input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.samplers._cells import PER_STRATUM, Strata, allocate
from opmon.samplers._checks import chunks
from opmon.types import Floats
from opmon.types.prospect import Foreseen

SHIFT = 17
OCTAVES = 32
"""Values smaller than the largest by a factor of 2 to this power count as zero."""
HALF = OCTAVES << 23 - SHIFT
PER_KIND = 2 * HALF + 1
LEAST = 2
"""Draws of a stratum, so that its variance is known; of a kind that expects fewer, too."""


def binned(foreseen: Foreseen) -> tuple[NDArray[np.uint16], int]:
    """The bin of every input, in the order of kind and mean, and the number of bins."""
    largest = max((float(np.abs(foreseen.mean[part]).max()) for part in chunks(len(foreseen))), default=0.0) or 1.0
    bins = np.empty(len(foreseen), dtype=np.uint16)
    lowest = 128 - OCTAVES << 23 - SHIFT
    for part in chunks(len(foreseen)):
        mean = foreseen.mean[part]
        size = (np.abs(mean) * (2 / largest)).astype(np.float32)
        code = np.clip((size.view(np.uint32) >> SHIFT).astype(np.int64) - lowest, 0, HALF)
        bins[part] = foreseen.kind[part].astype(np.int64) * PER_KIND + HALF + np.where(mean < 0, -code, code)
    return bins, (int(foreseen.kind.max()) + 1) * PER_KIND


def masses(foreseen: Foreseen, bins: NDArray[np.uint16], none: int, floor: float, mean: float | None = None) -> Floats:
    """The sum over the inputs of each bin of the density ``floor + (1 − floor) spread/mean``, for those not drawn.

    ``mean`` is that of their spread, unless it is given: of a part of the frame, that of the whole."""
    spread, number = _sums(foreseen, bins, none)
    if mean is None:
        mean = float(spread.sum()) / max(float(number.sum()), 1.0)
    relative = spread / mean if mean > 0 else number
    return np.asarray(floor * number + (1 - floor) * relative)


def mean_spread(foreseen: Foreseen, bins: NDArray[np.uint16], none: int) -> float:
    """The mean of what is foreseen of the spread, over the inputs not drawn."""
    spread, number = _sums(foreseen, bins, none)
    return float(spread.sum()) / max(float(number.sum()), 1.0)


def _sums(foreseen: Foreseen, bins: NDArray[np.uint16], none: int) -> tuple[Floats, Floats]:
    """The sum of the spread in each bin, and how many inputs it has."""
    spread, number = np.zeros(none + 1), np.zeros(none + 1)
    for part in chunks(len(bins)):
        spread += np.bincount(bins[part], foreseen.spread[part], minlength=none + 1)
        number += np.bincount(bins[part], minlength=none + 1)
    return spread[:none], number[:none]


def strata(population: NDArray[np.int64], mass: Floats, budget: int) -> tuple[Strata, NDArray[np.int64] | None]:
    """Consecutive bins of one kind that expect equal numbers of draws, and the kind of each stratum.

    No input may be out of reach, so where there are more kinds than draws, kinds share strata along the mean, and the
    strata have none.
    """
    occupied = np.flatnonzero(population > 0)
    kind, own = occupied // PER_KIND, mass[occupied]
    told = len(np.unique(kind)) <= budget
    labels = _by_kind(kind, own, budget) if told else _together(occupied % PER_KIND, own, budget)
    of_bin = np.full(len(population) + 1, -1, dtype=np.int64)
    of_bin[occupied] = labels
    sizes = np.bincount(labels, population[occupied]).astype(np.int64)
    share: Floats = np.bincount(labels, own).astype(np.float64)
    cut = Strata(of_bin, sizes, allocate(share, sizes, budget, LEAST))
    if not told:
        return cut, None
    kinds = np.zeros(len(sizes), dtype=np.int64)
    kinds[labels] = kind
    return cut, kinds


def _by_kind(kind: NDArray[np.int64], mass: Floats, budget: int) -> NDArray[np.int64]:
    """The stratum of each occupied bin: at least one of every kind, and no more than draws."""
    labels, first = np.zeros(len(kind), dtype=np.int64), 0
    expected = np.bincount(kind, mass) / mass.sum() * budget
    room = max(budget // LEAST, 1)
    there = np.unique(kind)
    for after, one in zip(range(len(there) - 1, -1, -1), there, strict=True):
        inside = kind == one
        most = min(max(room - first, 1), budget - first - after)
        own = _runs(mass[inside], min(max(int(expected[one] / PER_STRATUM), 1), most))
        labels[inside] = first + own
        first += int(own.max()) + 1
    return labels


def _together(value: NDArray[np.int64], mass: Floats, budget: int) -> NDArray[np.int64]:
    """The stratum of each occupied bin along ``value``, whatever its kind."""
    order = np.argsort(value, kind="stable")
    labels = np.zeros(len(value), dtype=np.int64)
    labels[order] = _runs(mass[order], max(budget // LEAST, 1))
    return labels


def _runs(mass: Floats, many: int) -> NDArray[np.int64]:
    """At most so many runs of bins of about the same mass."""
    cumulative = np.cumsum(mass)
    wanted = np.minimum(((cumulative - mass / 2) / cumulative[-1] * many).astype(np.int64), many - 1)
    return np.unique(wanted, return_inverse=True)[1]
