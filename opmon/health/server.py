"""``/metrics``, ``/healthz`` and ``/readyz`` at an address of their own."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from opmon.errors import ConfigError
from opmon.health.health import Health
from opmon.listening import listen, server_of

log = logging.getLogger(__name__)

_CONNECTIONS, _LAST_SECONDS = 50, 1
_Headers = dict[bytes, bytes]


@dataclass(frozen=True)
class Answer:
    """One answer of a probe."""

    status: int
    body: bytes
    media_type: str = "application/json"


def answered(health: Health, path: str, query: str, headers: _Headers, *, names: bool, metrics: bool) -> Answer | None:
    """What is answered at one of the three addresses; None at any other.

    ``names``: whether whoever asks may know the names of monitors, ``metrics``: whether they may read the metrics.
    """
    if path == "/healthz":
        good, told = health.alive(names=names)
        return _json(200 if good else 503, told)
    if path == "/readyz":
        good, told = health.ready(parse_qs(query).get("exclude", []), names=names)
        return _json(200 if good else 503, told)
    if path == "/metrics":
        if not metrics:
            return _json(401, {"error": "send Authorization: Bearer <token>"})
        return Answer(200, *health.metrics(headers.get(b"accept", b"").decode("latin-1")))
    return None


def has_token(health: Health, headers: _Headers) -> bool:
    """Whether the token of the metrics was sent; false where none is configured."""
    token = health.settings.metrics.token
    kind, _, given = headers.get(b"authorization", b"").partition(b" ")
    return (
        token is not None
        and kind.lower() == b"bearer"
        and hmac.compare_digest(given.strip(), token.get_secret_value().encode())
    )


def _json(status: int, told: object) -> Answer:
    return Answer(status, json.dumps(told, ensure_ascii=False).encode())


@dataclass
class HealthServer:
    """Answers at ``metrics: {listen: …}`` until it is closed."""

    health: Health
    address: tuple[str, int] = field(init=False)

    def __post_init__(self) -> None:
        metrics = self.health.settings.metrics
        self._socket = listen(metrics.host, metrics.port, "metrics")
        self.address = self._socket.getsockname()[:2]
        self._server = server_of(self._answer, _CONNECTIONS, _LAST_SECONDS)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="health", daemon=True)
        self._thread.start()
        log.info("metrics at http://%s:%d/metrics, probes at /healthz and /readyz", *self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(2 * _LAST_SECONDS + 1)
        self._socket.close()

    async def _serve(self) -> None:
        from anyio.to_thread import current_default_thread_limiter

        current_default_thread_limiter().total_tokens = 3  # of the connections to the database that the process has
        await self._server.serve(sockets=[self._socket])

    async def _answer(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        from anyio.to_thread import run_sync

        if scope["type"] != "http":
            return
        headers: _Headers = dict(scope["headers"])
        allowed = self.health.settings.metrics.token is None or has_token(self.health, headers)
        path, query = scope["path"], scope["query_string"].decode("latin-1")
        found = None
        if scope["method"] in ("GET", "HEAD"):
            found = await run_sync(lambda: answered(self.health, path, query, headers, names=allowed, metrics=allowed))
        told = found or _json(404, {"error": "there are /metrics, /healthz and /readyz"})
        said = [
            (b"content-type", told.media_type.encode()),
            (b"content-length", b"%d" % len(told.body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await send({"type": "http.response.start", "status": told.status, "headers": said})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else told.body})


def apart(health: Health) -> AbstractContextManager[HealthServer | None]:
    """The server with an address of its own: of a worker, and of any process where the address is written."""
    metrics = health.settings.metrics
    if not metrics.enabled or not (metrics.is_explicit or health.role == "worker"):
        return nullcontext()
    try:
        return HealthServer(health)
    except ConfigError as exc:
        if metrics.is_explicit:
            raise
        log.warning("there are no metrics: %s", exc)
        return nullcontext()
