"""Which events were kept, so that one that is sent again is acknowledged and not kept twice."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST = 10_000_000
"""So many of the newest events are known at the least (80 MB); up to an eighth more where they are many."""
_PIECES = 8


@dataclass
class Known:
    """The digests of the newest events; bounded, and without a clock. One thread adds, any may ask."""

    most: int = MOST
    _sealed: list[NDArray[np.uint64]] = field(default_factory=list)
    _new: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._new) + sum(map(len, self._sealed))

    def among(self, keys: Collection[int]) -> set[int]:
        """Those of the keys that are known."""
        asked = list(keys)
        found = self._new.intersection(asked)
        left = [key for key in asked if key not in found] if found else asked
        wanted = np.array(left, np.uint64)
        for some in tuple(self._sealed):
            at = np.searchsorted(some, wanted)
            at[at == len(some)] = 0
            found.update(wanted[some[at] == wanted].tolist())
        return found

    def add(self, keys: Iterable[int]) -> None:
        self._new.update(keys)

    def seal(self) -> None:
        """Put what is new into little room; forget the oldest where there is too much."""
        self.add_sealed(np.sort(np.fromiter(self._new, np.uint64, len(self._new))))
        self._new = set()

    def add_sealed(self, keys: NDArray[np.uint64]) -> None:
        """Know these too, newer than all before."""
        if len(keys):
            self._sealed.append(np.sort(keys))
        while len(self._sealed) > 1:
            last, before = self._sealed[-1], self._sealed[-2]
            if len(before) > 2 * len(last) or len(before) + len(last) > self.most // _PIECES:
                break
            self._sealed[-2:] = [np.sort(np.concatenate([before, last]))]
        while len(self._sealed) > 1 and sum(map(len, self._sealed[1:])) >= self.most:
            del self._sealed[0]
