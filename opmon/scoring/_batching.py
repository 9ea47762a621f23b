"""How many inputs a model is given at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

BUDGET = 256 << 20
"""Bytes that the activations of all inputs that are worked on may take."""
MOST = 1024
_LEAST, _LANES = 256, 8
"""Fewer inputs than this at once, or more lanes, gain nothing."""
_SIZES = (64, 256, 1024, 4096)
_PATIENCE = 0.5


def lanes_by_memory(model: Any, threads: int, budget: int = BUDGET) -> int:
    """How many batches are worked on at once: as many as ``threads``, where batches of 256 fit into ``budget`` bytes.

    A model of which they do not fit has so much to do for each input that all cores help with the same ones.
    """
    room = budget // max(1, _LEAST * 2 * _largest_step(model))
    return max(lanes for lanes in range(1, min(_LANES, threads) + 1) if lanes == 1 or lanes <= room)


def size_by_memory(model: Any, lanes: int = 1, budget: int = BUDGET, most: int = MOST) -> int:
    """The largest power of two, at most ``most``, whose activations fit into ``budget`` bytes, so often as ``lanes``.

    What one input needs is taken from the shapes: twice the largest sum of what one operator takes and gives. It
    depends on the model alone: on a CPU larger batches gain nothing, and a size found by a clock would make the last
    bits of a round's numbers depend on how busy the machine was.
    """
    row = 2 * _largest_step(model)
    return int(2 ** math.floor(math.log2(min(most, max(1, budget // lanes // max(row, 1))))))


def size_by_probe(run: Callable[[int], object], most: int, clock: Callable[[], float] = time.perf_counter) -> int:
    """The size that ``run`` is quickest with, per input, of those up to ``most``: for a GPU.

    Larger ones are not tried once one takes half a second, gains less than a tenth, or does not fit into memory.
    """
    chosen, best = most, math.inf
    for size in _SIZES:
        if size > most:
            break
        try:
            run(size)  # the first run of a size allocates
            began = clock()
            run(size)
        except Exception:  # whatever it is (mostly memory), the size before it did work
            if chosen == most:
                raise
            break
        each = (clock() - began) / size
        if each > 0.9 * best:
            break
        chosen, best = size, each
        if each * size > _PATIENCE:
            break
    return chosen


def _largest_step(model: Any) -> int:
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
