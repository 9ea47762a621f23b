"""Monitors that are left alone for a while: those that get nowhere, and those whose cycles fail."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from opmon.config import ScheduleSettings
from opmon.store.cycles import Ended

FIRST_REST = 5.0
LONGEST_REST = 300.0
"""How long a monitor that gets nowhere is left alone between its scheduled times, at most."""
LEASE_REST = 5.0
"""How long one is left alone that another process works on: who holds it may be gone."""
LONGEST_BACKOFF = timedelta(minutes=5)
"""How long a monitor whose cycles fail is not begun by its schedule, at most; one with longer periods keeps to them."""
LONGEST_OF_DEADLY = timedelta(hours=6)
"""The same of one in whose cycles process after process has ended."""
_AT_ONCE = 2
"""So many failures running change nothing."""


class Rests:
    """Until when single monitors are left alone between their scheduled times."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._until: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def is_over(self, name: str) -> bool:
        """Whether the monitor may be asked again."""
        with self._lock:
            return self._monotonic() >= self._until.get(name, (0.0, 0.0))[0]

    def rest(self, name: str) -> None:
        """Leave it alone, twice as long as the last time."""
        with self._lock:
            seconds = min(2 * self._until.get(name, (0.0, FIRST_REST / 2))[1], LONGEST_REST)
            self._until[name] = self._monotonic() + seconds, seconds

    def rest_for_lease(self, name: str) -> None:
        """Leave it alone for as long as it takes until its lease may have run out."""
        with self._lock:
            self._until[name] = self._monotonic() + LEASE_REST, FIRST_REST / 2

    def end(self, name: str) -> None:
        """It got on."""
        with self._lock:
            self._until.pop(name, None)

    def keep(self, names: Collection[str]) -> None:
        """Forget all others: they have nothing to do."""
        with self._lock:
            for name in set(self._until) - set(names):
                del self._until[name]


def is_deadly(name: str, ended: Ended | None, now: datetime) -> bool:
    """Whether a monitor is left alone because process after process has ended in the middle of its cycles.

    Those that were at work beside it when it happened have the same count: each waits for another while, so that they
    are not begun together again, and what a good one has done then counts.
    """
    if ended is None or ended.killed <= _AT_ONCE or ended.at > now:
        return False
    spread = 1 + zlib.crc32(name.encode()) % 100 / 100
    return (
        now < ended.at + min(LONGEST_BACKOFF * 2.0 ** min(ended.killed - _AT_ONCE - 1, 20), LONGEST_OF_DEADLY) * spread
    )


def backs_off(schedule: ScheduleSettings, ended: Ended | None, now: datetime) -> bool:
    """Whether a monitor whose last cycles failed is left alone although it is due."""
    if ended is None or ended.failures <= _AT_ONCE or ended.at > now:
        return False
    following = schedule.next_after(ended.at)
    period = LONGEST_BACKOFF if following is None else following - ended.at
    wait = min(period * 2.0 ** min(ended.failures - _AT_ONCE, 20), LONGEST_BACKOFF)
    return wait > period and now < ended.at + 0.9 * wait  # a little sooner: it is looked at once a period
