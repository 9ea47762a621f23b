"""How often something may be done by whom: a bucket for each, which fills steadily and is emptied by doing it."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

_KNOWN = 10_000


@dataclass
class Rates:
    """So many times a second, and at most ``burst`` at once."""

    rate: float
    burst: float
    monotonic: Callable[[], float] = time.monotonic
    _left: OrderedDict[Hashable, tuple[float, float]] = field(default_factory=OrderedDict, repr=False)
    """By whom: how often they might at some moment, and that moment."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def seconds_to_wait(self, who: Hashable) -> int:
        """Take one: 0 where it may be done now, else for how many seconds to wait.

        >>> now = [0.0]
        >>> rates = Rates(0.5, 2, lambda: now[0])
        >>> [rates.seconds_to_wait("ann") for _ in range(3)]
        [0, 0, 2]
        >>> now[0] = 2.0
        >>> rates.seconds_to_wait("ann"), rates.seconds_to_wait("ann"), rates.seconds_to_wait("ben")
        (0, 2, 0)
        """
        now = self.monotonic()
        with self._lock:
            left, then = self._left.pop(who, (self.burst, now))
            left = min(self.burst, left + (now - then) * self.rate)
            may = left >= 1
            self._left[who] = (left - may, now)
            if len(self._left) > _KNOWN:
                self._left.popitem(last=False)
        return 0 if may else max(1, math.ceil((1 - left) / self.rate))
