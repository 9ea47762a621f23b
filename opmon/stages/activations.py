"""The activations of a round on their way into its frame: to disk as they come, then one byte per neuron and input.

A level is a place between the least and the greatest value of a neuron over the whole frame, which is known when the
last input was scored. Until then the float32 values wait in a file without a name: a kill leaves nothing behind.
One million inputs and 512 neurons take 2 GB of disk meanwhile, 0.5 GB of memory and 0.2 GB in the frame; the process
peaks at 1.1 GB, and at 1.2 GB with 4,096 neurons (``tests/benchmarks/activations.py``).
"""

from __future__ import annotations

import dataclasses
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from opmon.errors import UnavailableError
from opmon.samplers.sections import sections_of
from opmon.scoring.scored import Scored

log = logging.getLogger(__name__)

LIMIT = 512 << 20
"""The most bytes that the activations of a frame take: of a wider layer so many neurons are kept, evenly spaced."""
_CHUNK = 16 << 20


class Activations:
    """Collects the activations of one round, of at most ``inputs`` inputs."""

    def __init__(self, folder: Path, inputs: int, limit: int = LIMIT) -> None:
        self.folder = folder
        self.most = max(1, limit // max(1, inputs))
        self.rows = 0
        self._neurons: NDArray[np.int64] | None = None
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Activations:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def take(self, part: Scored) -> Scored:
        """The part without its activations, which are written away."""
        if part.activations is None or not len(part.rows):
            return dataclasses.replace(part, activations=None)
        values = part.activations[:, self._chosen(part.activations.shape[1])]
        try:
            self._file.write(np.ascontiguousarray(values, dtype=np.float32).data)
        except OSError as exc:
            size = self._file.tell() >> 20
            raise UnavailableError(
                f"the activations of the round cannot be kept in {self.folder}: {exc} (after {size} MB). Make room, "
                f"lower round.max_inputs, or draw with another sampler."
            ) from exc
        self.rows += len(values)
        return dataclasses.replace(part, activations=None)

    def coded(self, keep: NDArray[np.bool_], levels: int) -> NDArray[np.uint8]:
        """The inputs to ``keep``, each neuron in so many equal levels of its range over them.

        Neurons that never vary tell nothing and are left out, but for one where there is no other.
        """
        width = 0 if self._neurons is None else len(self._neurons)
        low, high = np.full(width, np.inf, np.float32), np.full(width, -np.inf, np.float32)
        for values in self._read(keep, width):
            low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
        varies = high > low
        varies[:1] |= not varies.any()
        found = np.empty((int(keep.sum()), int(varies.sum())), np.uint8)
        done = 0
        for values in self._read(keep, width):
            found[done : done + len(values)] = sections_of(values[:, varies], low[varies], high[varies], levels)
            done += len(values)
        return found

    def _chosen(self, width: int) -> NDArray[np.int64]:
        if self._neurons is None:
            self._neurons = np.arange(width)
            if width > self.most:
                self._neurons = np.linspace(0, width - 1, self.most).round().astype(np.int64)
                log.warning("the layer has %d neurons: %d of them, evenly spaced, are kept", width, self.most)
        return self._neurons

    def _read(self, keep: NDArray[np.bool_], width: int) -> Iterator[NDArray[np.float32]]:
        """What was written, in pieces; only the rows to keep."""
        rows = max(1, _CHUNK // (4 * max(1, width)))
        self._file.seek(0)
        for start in range(0, self.rows, rows):
            count = min(rows, self.rows - start)
            values = np.frombuffer(self._file.read(4 * width * count), np.float32).reshape(count, width)
            kept = values[keep[start : start + count]]
            if len(kept):
                yield kept
