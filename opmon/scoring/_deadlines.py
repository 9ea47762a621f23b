"""Runs of a model that do not end, or take all memory, are ended: nothing says what a graph with a loop will do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from opmon.ceiling import ceiling

if TYPE_CHECKING:
    from onnxruntime import RunOptions

RUN_SECONDS = 300.0
"""What one run over one batch may take at most; batches are made so small that one takes a fraction of a second."""
_LOOK_SECONDS = 0.05


@dataclass(eq=False)
class Run:
    """A run that is under way."""

    options: RunOptions
    until: float
    stopped_for: Literal["", "time", "memory"] = ""

    def stop(self, why: Literal["time", "memory"]) -> None:
        self.stopped_for = self.stopped_for or why
        self.options.terminate = True


@dataclass
class Deadlines:
    """Tells runs to end whose time is up, and all where memory is: from a thread that is there while there are any."""

    _running: set[Run] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _more: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @contextmanager
    def within(self, options: RunOptions, seconds: float) -> Iterator[Run]:
        """A run with these options, which is told to end after so long."""
        run = Run(options, time.monotonic() + seconds)
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._watch, name="opmon-deadlines", daemon=True)
                thread.start()
                self._thread = thread
            self._running.add(run)
        self._more.set()
        try:
            yield run
        finally:
            with self._lock:
                self._running.remove(run)

    def _watch(self) -> None:
        while True:
            self._more.wait()
            time.sleep(_LOOK_SECONDS)
            short = ceiling.is_near()
            with self._lock:
                now = time.monotonic()
                for run in self._running:
                    if short or now > run.until:
                        run.stop("memory" if short else "time")
                if not self._running:
                    self._more.clear()


deadlines = Deadlines()
"""Those of this process."""
