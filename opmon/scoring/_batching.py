"""The number of inputs that a model is given at once: by memory, by trying, and never more than was too much before."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from opmon.errors import EndlessModel, ModelError, OutOfMemory
from opmon.types import Array

if TYPE_CHECKING:
    from onnx import ModelProto

BUDGET = 256 << 20
"""Bytes that the activations of all inputs that are worked on may take."""
USUAL, MOST = 1024, 4096
_FIRST, _FIRST_ON_GPU = 16, 64
_LEAST, _LANES = 256, 8
"""Fewer inputs than this at once, or more lanes, gain nothing."""
_PATIENCE, _TIMED, _ALIKE, _SLOWER, _SPOILT = 0.25, 0.004, 0.97, 0.9, 3

Try = Callable[[int], list[Array]]
"""The model's outputs for so many inputs, the first of those at hand."""


@dataclass
class Sizes:
    """The number of inputs that one session is given at once. It may be asked from several lanes.

    Where ``tried``, the session is timed on the inputs that come, on ever more of them at once, and settles for the
    most that are about as quick, each, as the quickest: caches decide it as much as memory does. As long as too few
    inputs have come to tell, it is ``usual``.

    What the clock says counts with ``exact`` only if the outputs have the same bits whatever the size is: else the last
    digits of a round's numbers, and so the inputs that are drawn, would depend on how busy the machine was.
    """

    usual: int = USUAL
    most: int = USUAL
    """More at once do not go, or do not fit into memory; it may turn out to be lower."""
    tried: bool = False
    exact: bool = True
    first: int = _FIRST
    clock: Callable[[], float] = time.perf_counter
    _rates: dict[int, float] = field(default_factory=dict)
    _spoilt: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(
        cls, model: ModelProto, device: str, lanes: int = 1, given: int | None = None, threads: int | None = None
    ) -> Sizes:
        """For a model on a device: what the user has ``given``, else tried, where no size has to be compiled first.

        One of the CPU's ``threads`` is timed by the time that it had, whatever else the machine does.
        """
        if given is not None:
            return cls(given, given)
        usual = size_by_memory(model, lanes)
        if device == "cpu":
            clock = time.thread_time if threads == 1 else time.perf_counter
            return cls(usual, size_by_memory(model, lanes, most=MOST), tried=True, clock=clock)
        if device == "cuda":
            return cls(usual, MOST, tried=True, exact=False, first=_FIRST_ON_GPU)
        return cls(usual, usual)

    def lower(self, most: int) -> None:
        """Let no batch be larger than ``most`` again."""
        with self._lock:
            self.most = max(1, min(most, self.most))

    def size(self, count: int, run: Try) -> int:
        """The number of ``count`` inputs to give at once; ``run`` is called while that is still to be found out."""
        if self.tried:
            with self._lock:
                self._probe(count, run)
        return min(self.usual, self.most)

    def _probe(self, count: int, run: Try) -> None:
        """Go on with the sizes that ``count`` inputs are enough for."""
        began, size = self.clock(), 2 * max(self._rates) if self._rates else self.first
        if count < size and self.most >= size:
            return
        try:
            while size <= min(count, self.most):
                rate = self._rate(size, run)
                if rate is None:
                    self.tried = False
                    return
                self._rates[size] = rate
                if self._declines() or self.clock() - began > _PATIENCE:
                    self._settle()
                    return
                size *= 2
        except OutOfMemory:
            self.most = max(1, size // 2)
        except EndlessModel:
            raise
        except ModelError:  # one of these inputs: which one is found when they are scored
            self._spoilt += 1
            self.tried = self._spoilt < _SPOILT
            return
        if size > self.most:
            self._settle()

    def _rate(self, size: int, run: Try) -> float | None:
        """Inputs a second in the best of some runs; None where the outputs depend on how many there are."""
        began = self.clock()
        outputs = run(size)  # the first run of a size allocates
        best = spent = self.clock() - began
        if self.exact and size > self.first and not _same(run(self.first), outputs):
            return None
        left = max(1, min(5, int(_TIMED / max(best, 1e-9)))) if spent < _PATIENCE else 0
        for _ in range(left):
            began = self.clock()
            run(size)
            best = min(best, self.clock() - began)
        return size / max(best, 1e-9)

    def _declines(self) -> bool:
        """Whether the last two sizes were slower than one before: one alone may be the machine's doing."""
        best = max(self._rates.values())
        return len(self._rates) > 2 and all(rate < _SLOWER * best for rate in list(self._rates.values())[-2:])

    def _settle(self) -> None:
        self.tried = False
        best = max(self._rates.values(), default=0.0)
        self.usual = max((size for size, rate in self._rates.items() if rate >= _ALIKE * best), default=self.usual)


def lanes_by_memory(model: ModelProto, threads: int, budget: int = BUDGET) -> int:
    """The number of batches to work on at once: ``threads``, where batches of 256 fit into ``budget`` bytes.

    A model of which they do not fit has so much to do for each input that all cores help with the same ones.
    """
    room = budget // max(1, _LEAST * 2 * _largest_step(model))
    return max(lanes for lanes in range(1, min(_LANES, threads) + 1) if lanes == 1 or lanes <= room)


def size_by_memory(model: ModelProto, lanes: int = 1, budget: int = BUDGET, most: int = USUAL) -> int:
    """The largest power of two, at most ``most``, whose activations fit into ``budget`` bytes, so often as ``lanes``.

    What one input needs is taken from the shapes: twice the largest sum of what one operator takes and gives.
    """
    row = 2 * _largest_step(model)
    return int(2 ** math.floor(math.log2(min(most, max(1, budget // lanes // max(row, 1))))))


def _largest_step(model: ModelProto) -> int:
    """The most bytes of one input's activations that a single operator reads and writes; unknown sizes count as 1."""
    from opmon.scoring.graph.layers import shapes_of

    shapes = shapes_of(model)
    weights = {tensor.name for tensor in model.graph.initializer}

    def size(name: str) -> int:
        shape = shapes.get(name)
        if shape is None or len(shape) < 2 or name in weights:
            return 0
        return 4 * math.prod(length or 1 for length in shape[1:])

    return max((sum(map(size, (*node.input, *node.output))) for node in model.graph.node), default=0)


def _same(few: list[Array], many: list[Array]) -> bool:
    return all(_bits(some) == _bits(all_[: len(some)]) for some, all_ in zip(few, many, strict=True))


def _bits(values: Array) -> object:
    """The exact contents of an array, to compare by."""
    values = np.asarray(values)
    return values.tolist() if values.dtype.kind == "O" else values.tobytes()
