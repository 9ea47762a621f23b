"""Writers of one SQLite file take turns: nobody of this process waits for long, and others come soon.

SQLite lets one write at a time and wakes nobody: who finds the file locked sleeps, longer each time, and whoever comes
just then is quicker. Among twenty one may so wait ten seconds for transactions of some milliseconds.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

PATIENCE = 0.5
"""Seconds after which the first in the line comes next, whoever else is there."""
_SHORTEST, _LONGEST = 0.0005, 0.005
"""Seconds between two tries to begin, where another process writes."""


@dataclass(eq=False)
class _Waiting:
    """Somebody in the line."""

    since: float
    gate: Lock = field(default_factory=Lock)
    called: bool = False
    """Whether the gate was opened, to try again."""
    served: bool = False
    """Whether the turn was handed over."""


@dataclass(eq=False)
class Line:
    """Those of this process that want to write to one file: nobody waits much longer than those who came before.

    Whoever comes when nobody writes goes first, as it is quickest: to wake another thread takes longer than most
    transactions. Only once the first in the line has waited for :data:`PATIENCE` is it given the next turn.
    """

    _mutex: Lock = field(default_factory=Lock, repr=False)
    _line: deque[_Waiting] = field(default_factory=deque, repr=False)
    _taken: bool = False

    @contextmanager
    def turn(self, seconds: float) -> Iterator[None]:
        """Wait for one's turn, which lasts as long as the block; after so many seconds SQLite is asked all the same,
        which then says who holds the file."""
        mine = self._waited(seconds)
        try:
            yield
        finally:
            if mine:
                self._next()

    def _waited(self, seconds: float) -> bool:
        now = time.monotonic()
        until, waiting = now + seconds, _Waiting(now)
        with self._mutex:
            if not self._taken and not self._is_late(now):
                self._taken = True
                return True
            waiting.gate.acquire()
            self._line.append(waiting)
        while True:
            waiting.gate.acquire(timeout=max(until - time.monotonic(), 0))
            with self._mutex:
                waiting.called = False
                if waiting.served:
                    return True
                if not self._taken:
                    self._taken = True
                    self._line.remove(waiting)
                    return True
                if time.monotonic() >= until:
                    self._line.remove(waiting)
                    return False

    def _next(self) -> None:
        with self._mutex:
            self._taken = self._is_late(time.monotonic())
            if not self._line:
                return
            first = self._line[0]
            if self._taken:
                self._line.popleft()
                first.served = True
            if not first.called:
                first.called = True
                first.gate.release()

    def _is_late(self, now: float) -> bool:
        """Whether the first in the line has waited long enough."""
        return bool(self._line) and now - self._line[0].since >= PATIENCE


def begin(connection: sqlite3.Connection, seconds: float) -> bool:
    """Begin a transaction that writes, within so many seconds; False where another process has the file that long."""
    until, pause = time.monotonic() + seconds, _SHORTEST
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        else:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
        pause = min(pause * 1.5, _LONGEST)
