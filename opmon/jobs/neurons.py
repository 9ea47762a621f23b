"""The neurons of a layer that are kept of each input."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.scoring.scored import Scored

log = logging.getLogger(__name__)


class Neurons:
    """Keeps at most ``most`` neurons of each input, evenly spaced."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._chosen: NDArray[np.int64] | None = None

    def take(self, scored: Scored) -> Scored:
        """The scored batch with the neurons that are kept."""
        if scored.activations is None or not len(scored.rows):
            return scored
        width = scored.activations.shape[1]
        if width <= self.most:
            return scored
        if self._chosen is None:
            self._chosen = np.linspace(0, width - 1, self.most).round().astype(np.int64)
            log.warning("the layer has %d neurons: %d of them, evenly spaced, are kept", width, self.most)
        return dataclasses.replace(scored, activations=np.ascontiguousarray(scored.activations[:, self._chosen]))


def as_bytes(activations: Sequence[NDArray[np.float32]]) -> pa.Array:
    """The neurons of an input as one value of so many bytes, without a copy of each batch."""
    width = 4 * activations[0].shape[1]
    return pa.concat_arrays(
        pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(width), len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.float32))]
        )
        for values in activations
    )


def from_bytes(column: pa.ChunkedArray) -> NDArray[np.float32]:
    """The neurons again, one row per input."""
    width = column.type.byte_width // 4
    pieces = [
        np.frombuffer(chunk.buffers()[1], np.float32, len(chunk) * width, 4 * chunk.offset * width)
        for chunk in column.chunks
    ]
    return np.concatenate(pieces).reshape(-1, width) if pieces else np.empty((0, width), np.float32)
