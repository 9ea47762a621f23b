"""Which inputs production logged before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.stages.toolbox import Toolbox
from opmon.store import seen
from opmon.store.rounds import Round


def first_met(work: Toolbox, round_: Round, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of the inputs with these hashes are met for the first time, here and in the rounds remembered."""
    fresh = _first_here(hashes)
    with work.store.read() as connection:
        for known in seen.hashes_before(connection, round_):
            fresh &= known[np.minimum(np.searchsorted(known, hashes), len(known) - 1)] != hashes
    return fresh


def _first_here(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which come for the first time among themselves.

    >>> _first_here(np.array([5, 7, 5, 5], np.uint64)).tolist()
    [True, True, False, False]
    """
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():  # the usual case, and half the memory
        return np.ones(len(hashes), dtype=bool)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    again = np.zeros(len(hashes), dtype=bool)
    again[order[1:]] = ordered[1:] == ordered[:-1]
    return ~again
