"""Truths as columns: one row an input, by the hash of its id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.types import Positions

MOMENT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, eq=False)
class Truths:
    """What the inputs with these hashes truly are, and since when that is known; each input once, hashes in order."""

    hashes: NDArray[np.uint64]
    labels: pa.Array
    """Names of classes, or numbers."""
    at: pa.Array
    read: pa.Array
    """When it was read: what its age is counted from."""

    def __len__(self) -> int:
        return len(self.hashes)

    @classmethod
    def newest(cls, hashes: NDArray[np.uint64], labels: pa.Array, at: pa.Array, read: pa.Array) -> Truths:
        """From rows in the order in which they were read: of those of one input the one that was known last counts, and
        of equally late ones the one that was read last."""
        order = np.lexsort((np.arange(len(hashes)), at.cast(pa.int64()).to_numpy(zero_copy_only=False), hashes))
        ordered = hashes[order]
        last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.empty(0, bool)
        kept = pa.array(order[last])
        return cls(ordered[last], labels.take(kept), at.take(kept), read.take(kept))

    def places(self, hashes: NDArray[np.uint64]) -> Positions:
        """The row of each of these hashes; −1 where there is none."""
        if not len(self.hashes):
            return np.full(len(hashes), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[place] == hashes, place, -1)
