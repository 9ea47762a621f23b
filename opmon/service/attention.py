"""What each monitor of a process is at, and since when it has not got on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from opmon.logs.place import Place, Watcher, watched, within
from opmon.store.workers import Busy

_work: ContextVar[object] = ContextVar("opmon_work", default=None)
LATE_SECONDS = 60.0
"""So much later than it said at most may a step end that ends by itself: a program has to be killed first."""


@dataclass(frozen=True)
class _At:
    work: object
    """The same in all threads that work on it."""
    stage: str
    since: datetime
    began_at: float
    """Since when by the clock that only goes forward: how long something takes is counted on that one."""
    moved: datetime
    moved_at: float
    waits: bool = False
    """Whether it waits for somebody else, and does nothing."""
    ends: Mapping[object, float] = field(default_factory=dict)
    """By what are the steps under way that end by themselves."""


class Attention:
    """Hears of every stage that is begun, and of how far long ones have come."""

    def __init__(
        self,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._monotonic = clock, monotonic
        self.watchers: tuple[Watcher, ...] = ()
        """Who else hears of it."""
        self._at: dict[str, _At] = {}
        self._lock = threading.Lock()

    @contextmanager
    def on(self, monitor: str) -> Iterator[None]:
        """Work on a monitor in this thread."""
        now = self._clock()
        moment = self._monotonic()
        at = _At(object(), "", now, moment, now, moment)
        with self._lock:
            self._at[monitor] = at
        token = _work.set(at.work)
        try:
            with watched(self._enter, *self.watchers), within(monitor=monitor):
                yield
        finally:
            with self._lock:
                if self._is_own(monitor):
                    del self._at[monitor]
            _work.reset(token)

    @contextmanager
    def _enter(self, place: Place) -> Iterator[None]:
        if place.monitor is None:
            yield
            return
        with self._lock:
            at = self._at.get(place.monitor)
        before, step = ("", False) if at is None else (at.stage, at.waits), object()
        ends = {} if place.at_most is None else {step: self._monotonic() + place.at_most + LATE_SECONDS}
        self._move(place.monitor, step, str(place), place.waiting_for is not None, ends)
        try:
            yield
        finally:
            self._move(place.monitor, step, *before)

    def _move(
        self, monitor: str, step: object, stage: str, waits: bool, ends: Mapping[object, float] | None = None
    ) -> None:
        with self._lock:
            if self._is_own(monitor):
                at, now = self._at[monitor], self._clock()
                others = {each: until for each, until in at.ends.items() if each is not step}
                moved_at = self._monotonic()
                self._at[monitor] = replace(
                    at, stage=stage, waits=waits, moved=now, moved_at=moved_at, ends={**others, **(ends or {})}
                )

    def moved(self, monitor: str) -> None:
        """Note that the monitor has got on; work that was given up on changes nothing."""
        with self._lock:
            if self._is_own(monitor):
                self._at[monitor] = replace(self._at[monitor], moved=self._clock(), moved_at=self._monotonic())

    def waits(self, monitor: str) -> bool:
        """Whether the monitor waits for somebody else, and takes nobody's time."""
        with self._lock:
            at = self._at.get(monitor)
            return at is not None and at.waits

    def stalled(self, seconds: Callable[[str], float]) -> list[str]:
        """The monitors that have not got on for as many seconds as each may take, and are at nothing that ends by
        itself."""
        now = self._monotonic()
        with self._lock:
            return [
                name
                for name, at in self._at.items()
                if now - at.moved_at > seconds(name) and all(now > until for until in at.ends.values())
            ]

    def busy(self, seconds: float, still: float = 0.0) -> dict[str, Busy]:
        """The monitors that have been worked on for so long, and have not got on for ``still`` seconds."""
        now = self._monotonic()
        with self._lock:
            return {
                name: Busy(at.stage, at.since, at.moved)
                for name, at in self._at.items()
                if now - at.began_at >= seconds and now - at.moved_at >= still
            }

    def forget(self, monitor: str) -> None:
        """Whoever is at the monitor is not listened to any more."""
        with self._lock:
            self._at.pop(monitor, None)

    def _is_own(self, monitor: str) -> bool:
        at = self._at.get(monitor)
        return at is not None and at.work is _work.get()
