"""Refusals are noted beside the requests, joined and bounded: whoever sends nonsense cannot fill the database with it.

What somebody did is noted in the transaction that does it; see :mod:`opmon.store.audit`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from opmon.errors import OpmonError
from opmon.rates import Rates
from opmon.store import audit
from opmon.store.audit import Act, Entry
from opmon.store.engine import Store

log = logging.getLogger(__name__)

GATHER_SECONDS = 1.0
_TRIM_SECONDS = 3600.0
_MOST_WAITING = 1000
_AN_HOUR, _AT_ONCE = 600, 300
"""Entries of refusals; those beyond are counted together."""


@dataclass
class Audited:
    """Notes what was refused, in a thread of its own that is there once something was."""

    store: Store
    keep: timedelta
    clock: Callable[[], datetime]
    _waiting: list[Entry] = field(default_factory=list, repr=False)
    _beyond: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _more: threading.Event = field(default_factory=threading.Event, repr=False)
    _end: threading.Event = field(default_factory=threading.Event, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)
    _room: Rates = field(default_factory=lambda: Rates(_AN_HOUR / 3600, _AT_ONCE), repr=False)
    _trimmed: float = field(default=float("-inf"), repr=False)

    def start(self) -> None:
        """Have the thread run from now on."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="audit", daemon=True)
                self._thread.start()

    def refused(self, who: str, known_by: str, origin: str, about: str) -> None:
        """Note a refusal, soon."""
        entry = Entry(self.clock(), Act.REFUSED, who, known_by, origin, None, about)
        with self._lock:
            if len(self._waiting) < _MOST_WAITING:
                self._waiting.append(entry)
            else:
                self._beyond += 1
        self._more.set()
        self.start()

    def close(self) -> None:
        """Note what waits, and end."""
        self._end.set()
        self._more.set()
        if self._thread is not None:
            self._thread.join(5)

    def _work(self) -> None:
        while not self._end.is_set():
            self._write()
            if self._more.wait(_TRIM_SECONDS):
                self._end.wait(GATHER_SECONDS)
                self._more.clear()
        self._write()

    def _write(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        try:
            if waiting:
                with self.store.write() as connection:
                    audit.note(connection, *self._bounded(audit.joined(waiting)))
            if time.monotonic() - self._trimmed > _TRIM_SECONDS:
                self._trimmed = time.monotonic()
                with self.store.write() as connection:
                    audit.trim(connection, self.clock() - self.keep)
        except OpmonError as exc:
            log.warning("what was refused could not be noted: %s", exc)
        except Exception:
            log.exception("what was refused could not be noted")

    def _bounded(self, entries: list[Entry]) -> list[Entry]:
        kept: list[Entry] = []
        beyond, self._beyond = self._beyond, 0
        for each in entries:
            if self._room.seconds_to_wait(""):
                beyond += each.times
            else:
                kept.append(each)
        if beyond:
            about = "more than are noted one by one"
            kept.append(Entry(entries[-1].at, Act.REFUSED, "", "", "several", None, about, beyond))
        return kept
