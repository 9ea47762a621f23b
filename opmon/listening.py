"""HTTP servers inside opmon: where they listen, and how long whoever calls them may take.

Senders may be slow on purpose: the head of a request has its time, as its body has.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable

import uvicorn

from opmon.errors import ConfigError

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
except ImportError:  # it is quicker, and need not be there
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol  # type: ignore[assignment]

HEAD_SECONDS = 10.0


class Hurried(Protocol):
    """Closes a connection on which no whole head of a request came in time."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is None and not self._is_at_work:
            self._expect_head()
        super().data_received(data)
        if self._is_at_work:
            self._head_came()

    @property
    def _is_at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _head_came(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


def listen(host: str, port: int, key: str) -> socket.socket:
    """A socket that listens; ``key`` is where opmon.yaml says the address."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=2048)
        # what is accepted has it too: an answer's body would wait 40 ms for the receiver to say that its head has come
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, UnicodeError) as exc:
        raise ConfigError(
            f"opmon cannot listen on {host}:{port}: {_why(exc)}, or say another address in {_where(key, port)}"
        ) from exc


def _why(exc: OSError | UnicodeError) -> str:
    """What is wrong with an address, and what helps."""
    if isinstance(exc, UnicodeError | socket.gaierror):
        return "nobody knows a host of that name. Correct it"
    if exc.errno == errno.EADDRINUSE:
        return "another program listens there. End that one"
    if exc.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address. Give it that one"
    if exc.errno == errno.EACCES:
        return "the user who runs opmon may not take this port. Give it the right to (CAP_NET_BIND_SERVICE)"
    return f"{exc.strerror or exc}. Put that right"


def _where(key: str, port: int) -> str:
    """Where another address is written: the environment wins over opmon.yaml."""
    other, variable = f"127.0.0.1:{8788 if port != 8788 else 8789}", f"OPMON_{key.upper()}_LISTEN"
    return f"{variable}={other}" if variable in os.environ else f"{key}: {{listen: {other}}}"


def server_of(app: Callable[..., Awaitable[None]], connections: int, last_seconds: int) -> uvicorn.Server:
    """A server that logs nothing of its own, trusts no proxy, and gives requests ``last_seconds`` when it is to end."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            interface="asgi3",
            http=Hurried,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=last_seconds,
            limit_concurrency=connections,
        )
    )
