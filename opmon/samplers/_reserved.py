"""Draws that are promised to parts of the frame: how many each part gets, and strata inside each part.

Every part is drawn from on its own, with a number of draws that is fixed before any label of the wave, so that each
input's chance of being drawn is known, and the estimate of the whole is as unbiased as without promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.samplers._cells import Strata, drawn, populations
from opmon.samplers._strata import proportional
from opmon.types import Positions
from opmon.types.frame import Reserved

Counts = NDArray[np.int64]
LEAST = 2


def shared(
    reserved: Reserved,
    sizes: Counts,
    expected: NDArray[np.float64],
    done: Counts,
    now: int,
    later: int,
) -> Counts:
    """How many of ``now`` draws each part gets, before ``later`` more: in proportion to ``expected`` and as many as it
    is promised by then; ``done`` were drawn in it before, ``sizes`` are left of it.

    A part that holds anything gets two draws: none of the frame may be out of reach, and its spread is to be known.
    """
    share = 1.0 if later == 0 else now / (now + later)
    wanted = np.ceil(np.maximum(np.asarray(reserved.least) - done, 0) * share).astype(np.int64)
    least = np.minimum(np.maximum(wanted, LEAST), sizes)
    if least.sum() > now:
        least = np.minimum(np.maximum(np.floor(wanted * (now / wanted.sum())).astype(np.int64), LEAST), sizes)
    return proportional(expected, now, sizes, least=least)


@dataclass(frozen=True, eq=False)
class Wave:
    """A wave of ``now`` draws before ``later`` more: the bins of the inputs, ``none`` of those drawn ``before``."""

    bins: NDArray[np.uint16]
    none: int
    now: int
    later: int
    before: Positions


Mass = Callable[[NDArray[np.uint16]], NDArray[np.float64]]
"""The expected draws of every bin, by the bins of the inputs; up to a factor."""
Cut = Callable[[Counts, NDArray[np.float64], int], tuple[Strata, Counts | None]]
"""The strata of so many draws, by the inputs and the mass of every bin; and their kinds, where they have any."""


def parts_drawn(
    wave: Wave, reserved: Reserved, mass: Mass, cut: Cut, rng: np.random.Generator
) -> tuple[Positions, Counts, Strata, Counts | None]:
    """The draws of a wave, so many in each part, from strata that are cut inside it: positions, strata, what they are.

    The order is random over all parts. Strata have kinds only where those of every part have.
    """
    count = len(reserved.least)
    inside = [np.where(reserved.part == part, wave.bins, wave.none).astype(wave.bins.dtype) for part in range(count)]
    population = [populations(own, wave.none) for own in inside]
    masses = [mass(own) for own in inside]
    sizes = np.array([int(own.sum()) for own in population])
    done = np.bincount(reserved.part[wave.before], minlength=count)
    expected = np.array([float(own.sum()) for own in masses])
    draws = shared(reserved, sizes, expected, done, wave.now, wave.later)
    positions, stratum, cuts, kinds, first = [], [], [], [], 0
    for part in np.flatnonzero(draws):
        one, kind = cut(population[part], masses[part], int(draws[part]))
        at, of = drawn(inside[part], one, rng)
        positions.append(at)
        stratum.append(of + first)
        cuts.append(one)
        kinds += [] if kind is None else [kind]
        first += len(one.sizes)
    order = rng.permutation(int(draws.sum()))
    all_sizes, all_counts = np.concatenate([one.sizes for one in cuts]), np.concatenate([one.counts for one in cuts])
    whole = Strata(cuts[0].of_bin, all_sizes, all_counts)
    told = np.concatenate(kinds) if len(kinds) == len(cuts) else None
    return np.concatenate(positions)[order], np.concatenate(stratum)[order], whole, told
