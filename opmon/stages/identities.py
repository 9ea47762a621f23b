"""Which inputs production logged before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.stages.toolbox import Toolbox
from opmon.store import seen
from opmon.store.rounds import Round


def first_met(work: Toolbox, round_: Round, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
    """Which of the inputs with these hashes are met for the first time, here and in the rounds remembered; and the
    sorted hashes of those."""
    fresh, ordered = first_here(hashes)
    with work.store.read() as connection:
        for known in seen.hashes_before(connection, round_):
            place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            fresh &= known[place] != hashes
    return fresh, ordered if len(ordered) == fresh.sum() else np.sort(hashes[fresh])


def first_here(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
    """Which come for the first time among themselves, and all different ones in order.

    >>> fresh, ordered = first_here(np.array([7, 5, 7, 7], np.uint64))
    >>> fresh.tolist(), ordered.tolist()
    ([True, True, False, False], [5, 7])
    """
    ordered = np.sort(hashes)
    again = ordered[1:] == ordered[:-1]
    fresh = np.ones(len(hashes), dtype=bool)
    if again.any():  # seldom: the order of so many takes twice the memory
        order = np.argsort(hashes, kind="stable")
        fresh[order[1:][again]] = False
        ordered = np.concatenate((ordered[:1], ordered[1:][~again]))
    return fresh, ordered
