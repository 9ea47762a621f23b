"""Memory for the small arrays of every batch: kept, not given back to the system and asked for again."""

from __future__ import annotations

import functools

import numpy as np

_SEEN = (32 << 20) - (64 << 10)


@functools.cache
def keep_freed_memory() -> None:
    """Let the C library keep some megabytes of what arrays free, once for the process.

    glibc gives memory back at once until it has seen a large block freed, and then keeps as much as that (mallopt(3),
    M_MMAP_THRESHOLD). Asking for the pages of a batch again can take longer than the arithmetic on them. The block is
    never written to, so that it costs nothing; other C libraries take no notice.
    """
    np.empty(_SEEN, np.uint8)
