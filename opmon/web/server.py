"""The pages and the API at work, in a thread of their own, until they are closed."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from opmon.config import Settings
from opmon.errors import ConfigError
from opmon.health.health import Health
from opmon.listening import listen, server_of
from opmon.store import annotators
from opmon.store.engine import Store
from opmon.web.app import application
from opmon.web.site import Site

log = logging.getLogger(__name__)

CALLS = 6
"""Calls that are worked on side by side, of the connections to the database that the process has."""
_CONNECTIONS = 1000
_LAST_SECONDS = 1


@dataclass
class Server:
    """Serves the pages and the API of a configuration."""

    settings: Settings
    store: Store
    health: Health | None = None
    address: tuple[str, int] = field(init=False)

    def __post_init__(self) -> None:
        web = self.settings.web
        require_guard(self.settings, self.store)
        tell_closed(self.settings, self.store)
        health = self.health or Health(self.settings, self.store, "web")
        self.site = Site(self.settings, self.store, health=health)
        self._socket = listen(web.host, web.port, "web")
        self.address = self._socket.getsockname()[:2]
        self.site.audited.start()
        self._server = server_of(application(self.site), _CONNECTIONS, _LAST_SECONDS)
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)
        self._thread.start()
        log.info("pages at %s, labelling at %s/label", self.url, self.url)

    @property
    def url(self) -> str:
        """Where a browser finds the pages."""
        web = self.settings.web
        return web.address if web.url or web.port else f"http://{self.address[0]}:{self.address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take no more requests, and let those under way end, for a second."""
        self._server.should_exit = True
        self._thread.join(2 * _LAST_SECONDS + 1)
        self.site.audited.close()
        self._socket.close()

    def _serve(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        from anyio.to_thread import current_default_thread_limiter

        current_default_thread_limiter().total_tokens = CALLS
        await self._server.serve(sockets=[self._socket])


def require_guard(settings: Settings, store: Store) -> None:
    """An error where other machines reach the pages, nobody has a token, and no proxy or provider says who asks."""
    if not settings.web.is_loopback and not _is_anybody_known(settings, store):
        raise ConfigError(
            f"web: listen: {settings.web.listen} can be reached from other machines, and nobody has a token: "
            f"run opmon annotators add NAME first, or listen on 127.0.0.1:{settings.web.port}"
        )


def tell_closed(settings: Settings, store: Store) -> None:
    """Say so where a proxy brings other machines to the pages, and nobody is let in yet. The monitors need no pages."""
    if settings.web.leads_elsewhere and not _is_anybody_known(settings, store):
        log.warning(
            "web: url: %s says that other machines reach the pages, and nobody has a token: they let nobody in until "
            "somebody runs opmon annotators add NAME",
            settings.web.url,
        )


def _is_anybody_known(settings: Settings, store: Store) -> bool:
    if settings.web.known_elsewhere is not None:
        return True
    with store.read() as connection:
        return annotators.has_tokens(connection, datetime.now(UTC))


def beside(settings: Settings, store: Store, health: Health | None = None) -> AbstractContextManager[Server | None]:
    """The server beside the service; none where there is to be none, or nobody asked for it and its port is taken."""
    if not settings.web.enabled:
        return nullcontext()
    try:
        return Server(settings, store, health)
    except ConfigError as exc:
        if settings.web.is_explicit:
            raise
        log.warning("there are no pages: %s", exc)
        return nullcontext()
