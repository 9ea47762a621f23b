"""A process without monitors of its own: it waits to be told to end, while its servers work beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from opmon.service.reloading import LOOK_SECONDS
from opmon.service.stopping import Signals


class Idle:
    """Waits; ``reload`` looks now and then whether the configuration has changed, and at once where it is forced."""

    def __init__(self, reload: Callable[[bool], object] = lambda forced: None) -> None:
        self._reload = reload
        self._stop = threading.Event()

    def run(self) -> None:
        """Wait until :meth:`stop` is called or a signal comes."""
        Signals(self.stop, lambda: self._reload(True)).listen()
        while not self._stop.wait(LOOK_SECONDS):
            self._reload(False)

    def stop(self) -> None:
        self._stop.set()
