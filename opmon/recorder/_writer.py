"""Writes what waits to files, in a thread of its own or in the one that asks; tries again where that fails."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - Arrow needs it, and it cannot be imported once Python ends
import logging
import threading
import time
from queue import Empty
from typing import TYPE_CHECKING

from opmon.recorder._buffer import Buffer
from opmon.recorder._place import Place, is_full, opened
from opmon.recorder._rarely import Rarely
from opmon.recorder.counts import Tally

if TYPE_CHECKING:
    from opmon.recorder._entries import Entry
    from opmon.recorder._files import File, Series

_log = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_STEP = 0.002
_NEVER = float("inf")


class Writer:
    """The files of one recorder in one process.

    Whoever wants all to be written asks, which is a number that goes up, and waits until that number is answered.
    """

    def __init__(self, uri: str, name: str, writer: str, buffer: Buffer) -> None:
        self.writing = threading.Lock()
        """Held while a file is made and put."""
        self.files = 0
        self.trouble: str | None = None
        self._uri, self._name, self._writer, self._buffer = uri, name, writer, buffer
        self._place: Place | None = None
        self._series: Series | None = None
        self._made: File | None = None
        self._halves: list[list[Entry]] = []
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._importing = False
        self._asked = self._answered = 0
        self._ending = False
        self._last = time.monotonic()
        self._pause, self._again = _FIRST_PAUSE, 0.0
        self._rarely = Rarely(_log)

    @property
    def started(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        """Begin to write in a thread; once Python ends none can be started, and there is none."""
        with self._starting:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="opmon-recorder", daemon=True)
            self._importing = True
            try:
                thread.start()
            except RuntimeError:
                self._importing = False
                return
            self._thread = thread

    def wait_for_arrow(self, timeout: float) -> None:
        """Wait while Arrow is being imported: a fork would leave its child half of it."""
        deadline = time.monotonic() + timeout
        while self._importing and time.monotonic() < deadline:
            time.sleep(_STEP)

    def flush(self, timeout: float, last: bool = False) -> bool:
        """Write all that waits now; whether that was done in time. ``last``: nothing comes after it."""
        deadline = time.monotonic() + timeout
        self._ending = self._ending or last
        self._again, self._asked = 0.0, self._asked + 1
        number = self._asked
        if self._thread is not None and self._thread.is_alive():
            self._buffer.bell.put(None)
            while self._answered < number and time.monotonic() < deadline and self._thread.is_alive():
                time.sleep(_STEP)
        while self._answered < number and not (self._thread is not None and self._thread.is_alive()):
            self._pass()
            if self._answered >= number or time.monotonic() >= deadline:
                break
            time.sleep(min(_FIRST_PAUSE, max(0.0, deadline - time.monotonic())))
            self._again = 0.0
        return self._answered >= number

    def _run(self) -> None:
        try:
            import opmon.recorder._files  # noqa: F401 - Arrow, before anybody is in a hurry
        finally:
            self._importing = False
        while not (self._ending and self._answered >= self._asked):
            self._listen()
            self._buffer.heard()
            self._pass()

    def _listen(self) -> None:
        """Wait until there is something to write, or for the bell."""
        now = time.monotonic()
        wait = 0.0 if self._asked > self._answered else min(self._buffer.end_window(now), self._buffer.due(now))
        if self._untold():
            wait = min(wait, self._tally_due() - now)
        wait = max(wait, self._again - now, 0.0)
        try:
            self._buffer.bell.get(timeout=None if wait == _NEVER else wait)
        except Empty:
            return

    def _pass(self) -> None:
        """Write what is due, and all that waits where somebody asked."""
        if time.monotonic() < self._again:
            return
        asked, ending = self._asked, self._ending
        hurry = asked > self._answered
        self._buffer.end_window(time.monotonic(), at_once=hurry)
        goal = self._buffer.added if hurry else 0
        while self._made or self._halves or self._buffer.taken < goal or self._buffer.due(time.monotonic()) <= 0:
            if not self._write(ending):
                return
        told_late = time.monotonic() >= self._tally_due()
        if self._untold() and (hurry or told_late) and not self._write(ending):
            return
        self._answered = asked

    def _write(self, ending: bool) -> bool:
        """Make the next file and put it; False where that failed and is to be tried again."""
        with self.writing:
            try:
                self._made = self._made or self._make(ending)
                if self._made is None:
                    return True
                self._place = self._place or opened(self._uri)
                self._place.put(self._made.name, self._made.data)
            except Exception as exc:  # noqa: BLE001 - a store may fail in any way; what waits goes on waiting
                self._failed(exc)
                return False
            file, self._made = self._made, None
            assert self._series is not None
            self._series.done(file)
            self._buffer.settle(file.entries, file.rows, file.unwritable)
            for _ in range(file.windows):
                self._buffer.windows.popleft()
        self.files += 1
        self._last = time.monotonic()
        self.trouble, self._buffer.obstacle, self._pause = None, "buffer_full", _FIRST_PAUSE
        return True

    def _make(self, ending: bool) -> File | None:
        """The next file; None where the records were such that it cannot be: then halves of them are tried next."""
        from opmon.recorder._columns import Columns
        from opmon.recorder._files import Series

        if self._series is None:
            self._series = Series(self._name, self._writer, Columns())
        entries = self._halves.pop() if self._halves else self._buffer.take()
        closed = ending and not self._halves and self._buffer.taken == self._buffer.added
        try:
            return self._series.make(entries, self._buffer.counts(), list(self._buffer.windows), closed)
        except Exception as exc:  # noqa: BLE001 - one record that Arrow cannot write must not cost the others
            if len(entries) > 1:
                half = len(entries) // 2
                self._halves += [entries[half:], entries[:half]]
            else:
                _log.warning("a record cannot be written: %s", exc)
                self._buffer.settle(entries, 0, sum(entry.rows for entry in entries))
            return None

    def _untold(self) -> bool:
        """Whether inputs were lost or passed over that no file tells yet."""
        told = self._series.told if self._series is not None and self._series.told is not None else Tally()
        now = self._buffer.counts()
        return (now.dropped, now.passed_over) != (told.dropped, told.passed_over)

    def _tally_due(self) -> float:
        return self._last + self._buffer.limits.seconds_per_file

    def _failed(self, exc: Exception) -> None:
        full = is_full(exc)
        self.trouble = f"{type(exc).__name__}: {exc}"
        self._buffer.obstacle = "disk_full" if full else "unreachable"
        self._place = None
        self._again, self._pause = time.monotonic() + self._pause, min(_LONGEST_PAUSE, 2 * self._pause)
        self._rarely.warning(
            "recorded inputs cannot be written to %s (%s); %d wait, and what does not fit is counted",
            self._uri,
            self.trouble,
            self._buffer.rows,
        )
