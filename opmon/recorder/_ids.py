"""Ids of inputs, writers and their files."""

from __future__ import annotations

import os
import random
import time

_chance = random.Random()  # noqa: S311 - ids are no secrets; its own, so that no random.seed() makes them the same
os.register_at_fork(after_in_child=_chance.seed)


def new_id() -> str:
    """A UUID of version 7: the time in milliseconds first, so that ids sort as they were made.

    >>> first = new_id(); len(first), first[14]
    (36, '7')
    """
    chance = _chance.getrandbits(74)
    number = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | (chance >> 62) << 64 | 0x2 << 62 | chance & (1 << 62) - 1
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
