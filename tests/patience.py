"""Waiting for something to come to pass: for as long as a busy machine may take, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST = 300.0
"""Seconds. A guard against what hangs, and no claim: how soon something happens is tested where that is promised."""


def until(holds: Callable[[], object], pause: float = 0.01) -> None:
    """Return once ``holds()`` is true."""
    end = time.monotonic() + LONGEST
    while not holds():
        assert time.monotonic() < end, f"it did not come to pass within {LONGEST:.0f} s"
        time.sleep(pause)
