"""How a process of the service is told to end, or to read its configuration again: by signals.

SIGTERM and SIGINT let what is under way finish; after :data:`LAST_RESORT` seconds the process ends whatever hangs. A
second signal ends it at once. SIGHUP asks for the configuration to be read again.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType

log = logging.getLogger(__name__)

LAST_RESORT = 7.0


def begin() -> None:
    """Let no request to read the configuration again end a process that has not got so far as to listen for one."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Signals:
    """Obeys the signals of a process."""

    def __init__(
        self, stop: Callable[[], None], reload: Callable[[], object], busy: Callable[[], str] = lambda: ""
    ) -> None:
        self._stop, self._reload, self._busy = stop, reload, busy
        self._came: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._told_to_stop = False

    def listen(self) -> None:
        """Obey from now on; only the main thread of a process hears signals, and elsewhere nothing is done."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        threading.Thread(target=self._obey, name="signals", daemon=True).start()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Nothing here takes a lock: a signal may come while this very thread has it."""
        if number != signal.SIGHUP:
            if self._told_to_stop:
                os._exit(128 + number)  # an exception would wait for the threads, which is what the first one is for
            self._told_to_stop = True
        self._came.put(number)

    def _obey(self) -> None:
        """Read the configuration again, or stop; the process ends some seconds later, whatever still hangs."""
        while (number := self._came.get()) == signal.SIGHUP:
            log.info("SIGHUP received: the configuration is read again")
            threading.Thread(target=self._reload, name="reload", daemon=True).start()  # it may hang
        log.info("%s received: the steps under way are finished first", signal.Signals(number).name)
        self._stop()
        threading.Event().wait(LAST_RESORT)  # a process that ends by itself takes this thread along
        busy = self._busy() or "somebody"
        log.warning("ending though this is still under way: %s. Nothing is lost, the next start goes on", busy)
        os._exit(0)
