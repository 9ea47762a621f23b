"""The endpoint at work: it listens, keeps, makes rows of what it kept, and removes what is not needed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from opmon import disk
from opmon.config import Settings
from opmon.errors import LeaseHeld, OpmonError
from opmon.ingest.app import App
from opmon.ingest.folding import Folding
from opmon.ingest.journal import Journal
from opmon.ingest.segments import Segments
from opmon.ingest.writer import Writer
from opmon.listening import listen, server_of

log = logging.getLogger(__name__)

JOURNAL = "@journal"
"""The folder, below that of all that is sent, in which it is kept as it comes."""
_FOLD_EVERY, _PRUNE_EVERY = 1.0, 600.0
_CONNECTIONS = 1000
_LAST_SECONDS = 3


def streams_of(settings: Settings) -> dict[str, Path]:
    """The folders of the monitors that read what is sent."""
    folders = {name: monitor.source.plugin.receives for name, monitor in settings.monitors.items()}
    return {name: folder for name, folder in folders.items() if folder is not None}


@dataclass
class Endpoint:
    """Takes what is sent for the monitors of a configuration, in threads of its own, until it is closed."""

    settings: Settings
    prune: Callable[[], object] = lambda: None
    address: tuple[str, int] = field(init=False)
    app: App = field(init=False)
    _stop: threading.Event = field(init=False, repr=False, default_factory=threading.Event)

    def __post_init__(self) -> None:
        ingest, streams = self.settings.ingest, streams_of(self.settings)
        disk.require_writes(self.settings.state)
        self._segments = Segments(self.settings.state / "ingest" / JOURNAL)
        try:
            self._socket = listen(ingest.host, ingest.port, "ingest")
        except BaseException:
            self._segments.close()
            raise
        self.address = self._socket.getsockname()[:2]
        journal = Journal(self._segments, ingest.every.total_seconds())
        self._folding = Folding(journal, streams, ingest.settle.total_seconds())
        self._writer = Writer(journal)
        token = None if ingest.token is None else ingest.token.get_secret_value()
        self.app = App(self._writer, frozenset(streams), token, ingest.max_body)
        self._server = server_of(self.app, _CONNECTIONS, _LAST_SECONDS)
        self._threads = [
            threading.Thread(target=self._serve, name="ingest", daemon=True),
            threading.Thread(target=self._tend, name="ingest-rows", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        host, port = self.address
        log.info("taking inputs of %s at http://%s:%d/v1/ingest/<monitor>", ", ".join(streams), host, port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take nothing more; what was taken is kept and told first."""
        self._server.should_exit = True
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._writer.close()
        self._socket.close()
        self._segments.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def _tend(self) -> None:
        pruned = -_PRUNE_EVERY
        while not self._stop.wait(_FOLD_EVERY):
            try:
                self._folding.fold()
                if time.monotonic() - pruned >= _PRUNE_EVERY:
                    pruned = time.monotonic()
                    self.prune()
            except OSError as exc:
                why = disk.why(exc)
                log.warning("no rows can be made of what was sent: %s; nothing is lost, it is tried again", why)
                self._stop.wait(10 * _FOLD_EVERY)
            except Exception:
                log.exception("no rows could be made of what was sent; nothing is lost, it is tried again")
                self._stop.wait(60 * _FOLD_EVERY)


@dataclass
class Standby:
    """The endpoint, as soon as no other process has it."""

    settings: Settings
    prune: Callable[[], object]
    seconds: float = 10.0
    is_at_work: threading.Event = field(default_factory=threading.Event, repr=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _thread: threading.Thread | None = None
    _endpoint: Endpoint | None = None

    def __enter__(self) -> Self:
        if streams_of(self.settings) and not self._try(log.info):
            self._thread = threading.Thread(target=self._wait, name="ingest-standby", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self._endpoint is not None:
            self._endpoint.close()

    def _try(self, tell: Callable[[str], None]) -> bool:
        try:
            self._endpoint = Endpoint(self.settings, self.prune)
            self.is_at_work.set()
        except LeaseHeld as exc:
            tell(str(exc))
        return self._endpoint is not None

    def _wait(self) -> None:
        while not self._stop.wait(self.seconds):
            try:
                if self._try(log.debug):
                    return
            except OpmonError as exc:
                log.warning("%s", exc)
            except OSError as exc:
                log.warning("what is sent cannot be taken yet: %s", disk.why(exc))
