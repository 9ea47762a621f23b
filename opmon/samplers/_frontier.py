"""The least variance at which a wanted number of failures is exposed: the frontier between the two aims.

A stratified draw with density ``d`` (relative to uniform sampling, mean 1) has variance ``Σ v_b / d_b`` and exposes
``Σ d_b f_b`` failures; ``v`` is the variance of an input's outcome, ``f`` its failure rate. Lagrange's condition gives

    ``d_b ∝ sqrt(v_b / (1 − f_b / s))``, at most ``c``,

where ``c`` draws an input surely. ``s = ∞`` is Neyman's allocation; as ``s`` falls below the largest rate, everything
at or above ``s`` is drawn whole, down to the greedy draw of the most suspicious inputs. One ``s`` is one point of the
frontier; a point between two of them is their mixture.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.types import Numbers

PER_OCTAVE = 12
"""Groups of bins per doubling of the number of inputs above: fine where few inputs decide."""
STEPS = 10
"""Values of ``s`` above the largest rate, and as many below."""
ROUNDS = 4
"""Passes that move what passes the limit ``c`` to the rest."""


def density(variance: Numbers, rate: Numbers, population: NDArray[np.int64], draws: int, reach: float) -> Numbers:
    """The density per bin that exposes Neyman's failures and ``reach`` of all that could be had beyond them.

    ``population`` inputs are in a bin; ``rate`` never falls from one bin to the next; ``draws`` are to be made.
    """
    groups = _groups(population)
    many = groups.max() + 1
    counts = np.bincount(groups, population, many)
    inside = np.maximum(counts, 1)
    f = np.bincount(groups, population * rate, many) / inside
    v = np.bincount(groups, population * variance, many) / inside
    points = _points(np.maximum(v, 1e-12), f, counts.astype(np.float64), draws)
    exposed = points @ (counts * f)
    wanted = min(exposed[0] + reach * (exposed[-1] - exposed[0]), exposed.max())
    at = int(np.argmax(exposed >= wanted))
    if at == 0:
        return np.asarray(points[0][groups])
    share = (wanted - exposed[at - 1]) / (exposed[at] - exposed[at - 1])
    return np.asarray(((1 - share) * points[at - 1] + share * points[at])[groups])


def _groups(population: NDArray[np.int64]) -> NDArray[np.int64]:
    """The group of every bin, by the logarithm of how many inputs lie in it and above."""
    above = np.cumsum(population[::-1])[::-1]
    return np.asarray(PER_OCTAVE * np.log2(np.maximum(above, 1)), dtype=np.int64)


def _points(v: Numbers, f: Numbers, counts: Numbers, draws: int) -> Numbers:
    """Densities along the frontier, one row per ``s``, from Neyman's to the greedy one."""
    total = counts.sum()
    most = max(total / draws, 1.0)
    s = _levels(f, counts, total / most)[:, None]
    free = 1 - f / s
    wanted = np.sqrt(v / np.maximum(free, 1e-12))
    full = free <= 0
    densities = np.where(full, most, 0.0)
    for _ in range(ROUNDS):
        room = np.maximum(total - most * (full * counts).sum(axis=1), 0.0)
        weight = (~full * wanted * counts).sum(axis=1)
        densities = np.where(full, most, wanted * (room / np.maximum(weight, 1e-300))[:, None])
        full |= densities > most
    densities = np.minimum(densities, most)
    densities = densities * (total / (densities * counts).sum(axis=1))[:, None]
    return np.concatenate([densities, _greedy(f, counts, most)[None]])


def _greedy(f: Numbers, counts: Numbers, most: float) -> Numbers:
    """The density that draws the most suspicious inputs, as many as there are draws."""
    order = np.argsort(-f, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    room = np.clip(counts.sum() / most - before, 0, counts[order])
    density = np.zeros(len(f))
    density[order] = most * room / np.maximum(counts[order], 1)
    return density


def _levels(f: Numbers, counts: Numbers, draws: float) -> Numbers:
    """Values of ``s``: above the largest rate, then the rates that 1, 2, … but not more than ``draws`` inputs reach."""
    occupied = counts > 0
    rates, above = f[occupied], counts[occupied]
    order = np.argsort(-rates)
    reached = np.cumsum(above[order])
    fitting = rates[order][reached <= draws]
    places = np.searchsorted(reached[: len(fitting)], np.geomspace(1, max(draws, 1), STEPS))
    below = fitting[np.minimum(places, len(fitting) - 1)] if len(fitting) else fitting
    levels = np.concatenate([[np.inf], rates.max() / (1 - 0.5 ** np.arange(1, STEPS)), below])
    return np.asarray(np.maximum(levels, 1e-300))
