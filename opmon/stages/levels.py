"""The activations of a round as its frame holds them: one byte per neuron and input.

A level is a place between the least and the greatest value of a neuron over the whole frame, which is known when the
last input was scored. Until then the float32 values are in the parts that scoring wrote: one million inputs and 512
neurons take 2 GB of disk meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.samplers.sections import sections_of

LIMIT = 512 << 20
"""The most bytes that the activations of a frame take: of a wider layer so many neurons are kept, evenly spaced."""


@dataclass(frozen=True, eq=False)
class Levels:
    """``count`` equal levels of the range of each neuron that varies.

    Neurons that never vary tell nothing and are left out, but for one where there is no other.
    """

    count: int
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    varies: NDArray[np.bool_]

    @classmethod
    def of(cls, pieces: Iterable[NDArray[np.float32]], count: int) -> Levels:
        """Of all inputs of a frame, given in pieces."""
        low = high = np.empty(0, np.float32)
        for values in pieces:
            if not len(values):
                continue
            least, most = values.min(axis=0), values.max(axis=0)
            low, high = (np.minimum(low, least), np.maximum(high, most)) if len(low) else (least, most)
        varies = high > low
        varies[:1] |= not varies.any()
        return cls(count, low[varies], high[varies], varies)

    def code(self, values: NDArray[np.float32]) -> NDArray[np.uint8]:
        """The level in which each value lies."""
        return sections_of(values[:, self.varies], self.low, self.high, self.count)
