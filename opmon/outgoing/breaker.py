"""A circuit breaker: a server that does not answer is left alone for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class Breaker:
    """Leaves a target alone that did not answer ``FAILURES`` times running; then one caller tries, for all."""

    FAILURES = 2
    FIRST_REST = 15.0
    LONGEST_REST = 120.0
    FORGOTTEN = 600.0
    """So many seconds after its rest a target that nobody asks is not told of any more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._rests = 0
        self._until = 0.0
        self._trying = False
        self.again_at = datetime.now(UTC)
        """When the rest is over, by the time of day: for messages, which stay the same as long as the rest does."""

    def enter(self) -> float:
        """For how many seconds the target is still left alone; 0 lets the caller through, who then tells the end."""
        with self._lock:
            if not self._rests:
                return 0.0
            left = self._until - self._clock()
            if left > 0 or self._trying:
                return max(left, 1.0)
            self._trying = True
            return 0.0

    def answered(self) -> None:
        with self._lock:
            self._failures = self._rests = 0
            self._trying = False

    def failed(self) -> None:
        """A caller was kept waiting in vain; those who were under way when the rest began do not lengthen it."""
        with self._lock:
            self._failures += 1
            if self._trying or (not self._rests and self._failures >= self.FAILURES):
                rest = min(self.FIRST_REST * 2.0**self._rests, self.LONGEST_REST)
                self._until = self._clock() + rest
                self.again_at = datetime.now(UTC) + timedelta(seconds=rest)
                self._rests += 1
            self._trying = False

    def left(self) -> None:
        """The caller learnt nothing about the target."""
        with self._lock:
            self._trying = False

    def left_alone(self) -> float | None:
        """For how many seconds the target is still left alone, 0 while one caller tries for all; None where it answers,
        or nobody has asked it for long."""
        with self._lock:
            left = self._until - self._clock()
            return max(0.0, left) if self._rests and left > -self.FORGOTTEN else None


breakers: dict[str, Breaker] = {}
"""Those of this process, by what they are known as: an address without what could be secret in it."""
_making = threading.Lock()


def breaker_of(target: str) -> Breaker:
    """The breaker of a target: one for the whole process, whichever monitor asks."""
    with _making:
        return breakers.setdefault(target, Breaker())


def left_alone() -> dict[str, float]:
    """The targets that this process leaves alone, and for how many seconds still."""
    found = {name: each.left_alone() for name, each in list(breakers.items())}
    return {name: seconds for name, seconds in found.items() if seconds is not None}
