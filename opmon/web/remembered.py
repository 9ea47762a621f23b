"""What the database said a moment ago, so that it is not asked with every request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_MOST = 10_000
_MARGIN = 0.2


@dataclass
class Remembered(Generic[Key, Value]):
    """What was found under each key, for some seconds; that nothing was found is not remembered."""

    seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _found: dict[Key, tuple[Value, float]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def get(self, key: Key, find: Callable[[], Value | None]) -> Value | None:
        """What is remembered, or else what ``find`` finds."""
        now = self.monotonic()
        with self._lock:
            known = self._found.get(key)
        if known is not None and known[1] > now:
            return known[0]
        found = find()
        with self._lock:
            self._found.pop(key, None)
            if found is not None:
                self._found[key] = found, now + self.seconds
                if len(self._found) > _MOST:
                    self._found.pop(next(iter(self._found)))
        return found

    def knows(self, key: Key) -> bool:
        """Whether :meth:`get` would find this out without asking, now and for a while."""
        with self._lock:
            known = self._found.get(key)
        return known is not None and known[1] > self.monotonic() + _MARGIN

    def forget(self, key: Key) -> None:
        with self._lock:
            self._found.pop(key, None)
