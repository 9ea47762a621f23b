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
    """What the inputs with these hashes truly are, and since when that is known; hashes in order, each input once.

    Where a model names the classes, and the next version may name others, an input is there with each word that was
    said of it, the newest behind the others.
    """

    hashes: NDArray[np.uint64]
    labels: pa.Array
    """Names of classes, or numbers."""
    at: pa.Array
    read: pa.Array
    """When it was read: what its age is counted from."""

    def __len__(self) -> int:
        return len(self.hashes)

    @classmethod
    def newest(
        cls, hashes: NDArray[np.uint64], labels: pa.Array, at: pa.Array, read: pa.Array, *, each_word: bool = False
    ) -> Truths:
        """From rows in the order in which they were read: of those of one input the one that was known last counts, and
        of equally late ones the one that was read last; ``each_word``: of those that say the same of one input."""
        when = at.cast(pa.int64()).to_numpy(zero_copy_only=False)
        order = np.lexsort((np.arange(len(hashes)), when, hashes))
        if each_word and len(hashes):
            words = labels.dictionary_encode().indices.to_numpy(zero_copy_only=False)
            by_word = np.lexsort((np.argsort(order), words, hashes))
            alike = (hashes[by_word][1:] == hashes[by_word][:-1]) & (words[by_word][1:] == words[by_word][:-1])
            superseded = np.zeros(len(hashes), dtype=bool)
            superseded[by_word[:-1][alike]] = True
            order = order[~superseded[order]]
            last = np.ones(len(order), dtype=bool)
        else:
            ordered = hashes[order]
            last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.empty(0, bool)
        kept = pa.array(order[last])
        return cls(hashes[order[last]], labels.take(kept), at.take(kept), read.take(kept))

    def places(self, hashes: NDArray[np.uint64]) -> Positions:
        """The row of each of these hashes, the newest; −1 where there is none."""
        if not len(self.hashes):
            return np.full(len(hashes), -1, dtype=np.int64)
        place = np.maximum(np.searchsorted(self.hashes, hashes, side="right") - 1, 0)
        return np.where(self.hashes[place] == hashes, place, -1)
