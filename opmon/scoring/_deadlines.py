"""Runs of a model that do not end are ended: a graph may hold a loop, and nothing says how often it goes round."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import RunOptions

RUN_SECONDS = 300.0
"""What one run over one batch may take at most; batches are made so small that one takes a fraction of a second."""
_LOOK_SECONDS = 1.0


@dataclass
class Deadlines:
    """Tells runs to end whose time is up, from a thread that is there while there are any."""

    _running: dict[int, tuple[float, RunOptions]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _more: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @contextmanager
    def within(self, options: RunOptions, seconds: float) -> Iterator[None]:
        """A run with these options, which is told to end after so long."""
        with self._lock:
            self._running[id(options)] = time.monotonic() + seconds, options
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="opmon-deadlines", daemon=True)
                self._thread.start()
        self._more.set()
        try:
            yield
        finally:
            with self._lock:
                del self._running[id(options)]

    def _watch(self) -> None:
        while True:
            self._more.wait()
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                now = time.monotonic()
                for until, options in self._running.values():
                    if now > until:
                        options.terminate = True
                if not self._running:
                    self._more.clear()


deadlines = Deadlines()
"""Those of this process."""
