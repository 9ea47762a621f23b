"""The crew that works on monitors side by side: one that is slow, or hangs, delays no other.

Each piece of work has a thread of its own and no monitor has two at once: what is asked of one that is busy is done
when it is free again. At most so many work at the same time; one that waits for somebody else, or has taken long, is
not counted any more, so that those that hang cannot use up the places of the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

PLACES = 8
SLOW = 30.0
"""Seconds after which somebody at work takes no place any more."""


class Crew:
    """Calls ``work(name, open_new)`` for each wanted monitor, in threads."""

    def __init__(
        self,
        work: Callable[[str, bool], None],
        places: int = PLACES,
        monotonic: Callable[[], float] = time.monotonic,
        waits: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self._work, self._places, self._monotonic, self._waits = work, places, monotonic, waits
        self._wanted: dict[str, bool] = {}
        self._since: dict[str, float] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._given_up: list[threading.Thread] = []
        self._slow: set[str] = set()
        self._closed = False
        self._changed = threading.Condition()

    def want(self, name: str, *, open_new: bool) -> None:
        """Let ``name`` do its work as soon as there is a place; wanted twice before it begins is wanted once."""
        with self._changed:
            self._wanted[name] = self._wanted.get(name, False) or open_new
        self.tend()

    def tend(self) -> None:
        """Begin what can begin; call it now and then, so that slow ones give up their places."""
        with self._changed:
            self._notice_slow()
            for name in [name for name in self._wanted if name not in self._since]:
                if self._closed or len(self._since) - len(self._slow) >= self._places:
                    return
                work = threading.Thread(target=self._do, args=(name, self._wanted[name]), name=name, daemon=True)
                try:
                    work.start()
                except RuntimeError as exc:  # the machine has no thread left: it stays wanted
                    log.warning("monitor %s waits: %s", name, exc)
                    return
                self._since[name] = self._monotonic()
                self._threads[name] = work
                del self._wanted[name]

    def busy(self) -> set[str]:
        """The monitors at work, or waiting for a place."""
        with self._changed:
            return set(self._since) | set(self._wanted)

    def close(self) -> None:
        """Begin nothing any more."""
        with self._changed:
            self._closed = True
            self._wanted.clear()

    def wait(self, seconds: float) -> set[str]:
        """Wait at most so long until none is at work; returns those that still are."""
        with self._changed:
            self._changed.wait_for(lambda: not self._since, seconds)
            return set(self._since)

    def give_up(self, name: str) -> None:
        """Wait for whoever is at it no longer: the next one may begin. It cannot be ended, and what it does is lost."""
        with self._changed:
            thread = self._threads.get(name)
            if thread is not None:
                self._given_up.append(thread)
                self._leave(name)
        self.tend()

    def hanging(self) -> int:
        """How many that were given up on still hang."""
        with self._changed:
            self._given_up = [thread for thread in self._given_up if thread.is_alive()]
            return len(self._given_up)

    def _leave(self, name: str) -> None:
        del self._since[name], self._threads[name]
        self._slow.discard(name)
        self._changed.notify_all()

    def _notice_slow(self) -> None:
        for name, since in self._since.items():
            if name not in self._slow and (self._waits(name) or self._monotonic() - since > SLOW):
                self._slow.add(name)
                seconds, level = self._monotonic() - since, logging.DEBUG if self._waits(name) else logging.INFO
                log.log(level, "monitor %s has been at work for %.0f s; the others do not wait for it", name, seconds)

    def _do(self, name: str, open_new: bool) -> None:
        try:
            self._work(name, open_new)
        finally:
            with self._changed:
                if self._threads.get(name) is threading.current_thread():
                    self._leave(name)
            self.tend()
