"""What a process that lives for long gives back of the memory that it no longer uses.

Each thread that asks glibc for memory may get a heap of its own, and heaps keep what was freed between things that
live: a worker, each of whose cycles is a thread, grows for hours, to what it needs at the most. Two heaps do for all of
them, and what is free in them goes back to the system now and then. Before that, what only holds itself is let go:
Python waits with it until a quarter of what it holds is new. Arrow has a pool of its own. Elsewhere than on glibc no
more is done.
"""

from __future__ import annotations

import ctypes
import gc
import sys

_ARENA_MAX = -8
"""How mallopt calls the number of heaps."""
_HEAPS = 2


def few_heaps() -> None:
    """From now on threads share heaps."""
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_ARENA_MAX, _HEAPS)


def give_back() -> None:
    """Give back what is free; it takes a tenth of a second."""
    gc.collect()
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL("libc.so.6")
    except OSError:  # another C library
        return None
