"""The draws that slices are promised (``at_least``), as parts of the frame of which no input lies in two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opmon.config.slices import MOST_ASKED, MOST_PARTS
from opmon.stages.slicing import codes_of
from opmon.types.frame import Reserved
from opmon.types.slicing import Slicing


def reserved_of(slicing: Slicing | None, path: Path, budget: int) -> Reserved | None:
    """What the frame at ``path`` promises its parts; None where it promises nothing.

    Slices of several columns are cut into parts where they cross. A slice's draws are promised to its parts in
    proportion to their sizes, and a part of several slices gets the most that any promises it. Promises never take more
    than ``MOST_ASKED`` of the budget: they shrink alike where they would.
    """
    promising = [one for one in (slicing.divided if slicing is not None else ()) if one.at_least]
    if not promising:
        return None
    place, wanted = np.zeros(1, np.int64), []
    for one in promising:
        own = np.array([one.levels.index(level) + 1 if level in one.named else 0 for level in one.levels], np.int64)
        levels = own[codes_of(path, one)]
        place = place * (len(one.levels) + 1) + levels
        wanted.append((levels, one.at_least))
    cells, part = np.unique(place, return_inverse=True)
    sizes = np.bincount(part, minlength=len(cells))
    least = np.zeros(len(cells))
    for levels, at_least in wanted:
        own = np.zeros(len(cells), np.int64)
        own[part] = levels
        total = np.bincount(own, weights=sizes)[own]
        least = np.maximum(least, np.where(own > 0, np.minimum(at_least, total) * sizes / total, 0.0))
    return _kept(part, least, budget)


def _kept(part: NDArray[np.intp], least: NDArray[np.float64], budget: int) -> Reserved:
    """The parts that are promised most, as far as the budget bears; the others are one together, the first."""
    asked = np.ceil(least - 1e-9)
    kept = np.flatnonzero(asked)
    kept = kept[np.argsort(-asked[kept], kind="stable")][: max(1, int(MOST_PARTS * budget))]
    scale = min(1.0, MOST_ASKED * budget / max(float(asked[kept].sum()), 1.0))
    of = np.zeros(len(asked), np.int16)
    of[kept] = np.arange(1, len(kept) + 1)
    return Reserved(of[part], (0, *np.floor(asked[kept] * scale).astype(int).tolist()))
