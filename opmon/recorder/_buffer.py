"""The bounded buffer of records that are not written yet; what does not fit is counted."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue

from opmon.recorder._entries import Entry
from opmon.recorder._limits import Limits
from opmon.recorder._reservoir import Reservoir, Sample
from opmon.recorder.counts import Tally

_HALT_SECONDS = 0.1
_HASTE_SECONDS = 0.02


@dataclass(slots=True)
class Window:
    """A window of time that is over: when it began and ended, how many were seen, and those that are kept of it."""

    began_ns: int
    ended_ns: int
    seen: int
    weight: float
    entries: list[Entry]


@dataclass(slots=True)
class Buffer:
    """Takes entries from any thread and gives them to one; nobody waits but for its lock, for microseconds."""

    limits: Limits
    sample: Sample | None
    tally: Tally = field(default_factory=Tally)
    obstacle: str = "buffer_full"
    """Why what does not fit is dropped."""
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    bell: SimpleQueue[None] = field(default_factory=SimpleQueue)
    """Wakes the thread that writes; may be rung from a signal handler."""
    rows: int = 0
    bytes: int = 0
    added: int = 0
    """How many entries ever waited, and"""
    taken: int = 0
    """how many of them a file was made of."""
    windows: deque[Window] = field(default_factory=deque)
    """Windows of the sample that are over and not in a file."""
    _waiting: deque[Entry] = field(default_factory=deque)
    _reservoir: Reservoir | None = None
    _ended: list[tuple[Reservoir, int]] = field(default_factory=list)
    _chance: random.Random = field(default_factory=random.Random)
    _rung: bool = False
    _halted: bool = False

    def add(self, entry: Entry) -> None:
        """Let an entry wait, or count it as dropped."""
        with self.lock:
            if not self._halted:
                return self._add(entry)
        return self._bring(partial(self._add, entry))

    def draw(self, weight: float, make: Callable[[], Entry]) -> None:
        """Draw a record into the sample of this window; it is copied (``make``) only if it is kept for now."""
        self._bring(partial(self._draw, weight, make))

    def drop(self, reason: str, rows: int = 1) -> None:
        """Count inputs that never came so far."""
        self._bring(partial(self._drop, reason, rows))

    def hasten(self) -> None:
        """Make everything due at once: the process is about to end."""
        self.limits = replace(self.limits, seconds_per_file=min(_HASTE_SECONDS, self.limits.seconds_per_file))

    def halt(self) -> None:
        """Take nothing more: the process is about to be ended by a signal, and whoever records waits for that."""
        with self.lock:
            self._halted = True

    def _bring(self, what: Callable[[], None]) -> None:
        while True:
            with self.lock:
                if not self._halted:
                    return what()
            time.sleep(_HALT_SECONDS)

    def _add(self, entry: Entry) -> None:
        self.tally.recorded += entry.rows
        reason = "closed" if self.closed else self._refusal(entry.rows, entry.size)
        if reason is not None:
            self.tally.dropped[reason] += entry.rows
            return
        self.rows += entry.rows
        self.bytes += entry.size
        self._waiting.append(entry)
        self.added += 1
        if len(self._waiting) == 1 or self._full():
            self._ring()

    def _draw(self, weight: float, make: Callable[[], Entry]) -> None:
        if self.closed:
            self._drop("closed", 1)
            return
        reservoir = self._open_window()
        priority = reservoir.draw(weight)
        if priority <= reservoir.threshold:
            self.tally.recorded += 1
            return
        try:
            entry = make()
        except Exception:
            reservoir.forget(weight)
            raise
        self.tally.recorded += 1
        reservoir.keep(priority, weight, entry)

    def _drop(self, reason: str, rows: int) -> None:
        self.tally.recorded += rows
        self.tally.dropped[reason] += rows
        self._ring()

    def counts(self) -> Tally:
        """The counts as they are now."""
        with self.lock:
            return self.tally.copy()

    def take(self) -> list[Entry]:
        """What makes the next file. It counts as waiting until :meth:`settle`."""
        taken: list[Entry] = []
        rows = held = 0
        with self.lock:
            while self._waiting and rows < self.limits.rows_per_file and held < self.limits.bytes_per_file:
                entry = self._waiting.popleft()
                taken.append(entry)
                rows, held = rows + entry.rows, held + entry.size
            self.taken += len(taken)
        return taken

    def settle(self, entries: list[Entry], written: int, dropped: int) -> None:
        """What became of entries that were taken."""
        with self.lock:
            self.rows -= sum(entry.rows for entry in entries)
            self.bytes -= sum(entry.size for entry in entries)
            self.tally.written += written
            if dropped:
                self.tally.dropped["unwritable"] += dropped

    def due(self, now: float) -> float:
        """In how many seconds there is a file to write; 0 or less: now; infinite: not before the bell rings."""
        with self.lock:
            if self._full():
                return 0.0
            if self._waiting:
                return self._waiting[0].arrived + self.limits.seconds_per_file - now
            return float("inf")

    def end_window(self, now: float, at_once: bool = False) -> float:
        """Let the kept records of windows that are over wait for a file; in how many seconds the open one ends."""
        left = float("inf")
        with self.lock:
            reservoir = self._reservoir
            if reservoir is not None and self.sample is not None:
                left = reservoir.began + self.sample.every - now
                if left <= 0 or at_once:
                    self._end(reservoir)
                    left = float("inf")
            ended, self._ended = self._ended, []
        for reservoir, ended_ns in ended:  # sorting them takes too long for whoever waits for the lock
            window = Window(reservoir.began_ns, ended_ns, reservoir.seen, reservoir.total, reservoir.kept())
            with self.lock:
                self._waiting.extend(window.entries)
                self.added += len(window.entries)
                self.windows.append(window)
        return left

    def heard(self) -> None:
        """Note that the bell was heard: it may ring again."""
        self._rung = False

    def _ring(self) -> None:
        if not self._rung:
            self._rung = True
            self.bell.put(None)

    def _full(self) -> bool:
        return self.rows >= self.limits.rows_per_file or self.bytes >= self.limits.bytes_per_file

    def _refusal(self, rows: int, size: int) -> str | None:
        full = self.rows + rows > self.limits.buffer_rows or self.bytes + size > self.limits.buffer_bytes
        return self.obstacle if full else None

    def _open_window(self) -> Reservoir:
        assert self.sample is not None
        reservoir = self._reservoir
        if reservoir is not None and time.monotonic() >= reservoir.began + self.sample.every:
            self._end(reservoir)
            reservoir = None
        if reservoir is None:
            keep = min(self.sample.keep, self.limits.buffer_rows)
            reservoir = self._reservoir = Reservoir(keep, self.limits.buffer_bytes // 2, self._chance)
            self._ring()  # so that the window ends although nothing more may come
        return reservoir

    def _end(self, reservoir: Reservoir) -> None:
        """The window is over: what is kept of it waits; where there is no room for it, all it stands for is lost."""
        self._reservoir = None
        reason = self._refusal(len(reservoir), reservoir.bytes)
        if reason is not None:
            self.tally.dropped[reason] += reservoir.seen
            return
        self.rows += len(reservoir)
        self.bytes += reservoir.bytes
        self.tally.passed_over += reservoir.seen - len(reservoir)
        self._ended.append((reservoir, time.time_ns()))
        self._ring()
