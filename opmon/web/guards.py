"""What every request passes before the application sees it: limits on the way in, security headers on the way out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from opmon.web.root import below

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_SECONDS = 30.0
"""A body that has not come after so long is given up."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Scripts and styles come from opmon alone, and none is written into a page."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
"""What an answer carries unless it says otherwise itself."""

NOW = "opmon-now"
"""The server's time: pages put their own clock right by it. A proxy may write its own into ``Date``."""


@dataclass
class Guarded:
    """Refuses bodies that are too large or too slow, and adds the headers that browsers heed."""

    app: Application
    max_body: int
    prefix: str = ""
    """What a proxy puts before every path, whether it takes it away again or not."""
    mlflow_pages: str | None = None
    """Where MLflow's own pages are, if they are on the same server."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    body_seconds: float = BODY_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        guarded = _headed(send, self.clock)
        try:
            body = await asyncio.wait_for(self._body(scope, receive), self.body_seconds)
        except TimeoutError:
            await _refuse(guarded, 408, f"the body did not come within {self.body_seconds:g} s")
        except _TooLarge:
            await _refuse(guarded, 413, f"the body is larger than {self.max_body:,} bytes (web: max_body)")
        else:
            if body is None:
                return
            scope = {**scope, "root_path": scope.get("root_path") or self.prefix}
            with below(scope, self.mlflow_pages):
                await self.app(scope, _replayed(body, receive), guarded)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """All of the body; None where the sender left."""
        said = dict(scope["headers"]).get(b"content-length", b"")
        if said.isdigit() and int(said) > self.max_body:
            raise _TooLarge
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            piece = message.get("body", b"")
            size += len(piece)
            if size > self.max_body:
                raise _TooLarge
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)


@dataclass
class SideBySide:
    """Works on some requests at a time, for which there are connections to the database; others wait their turn.

    A turn begins once the request is there and ends when its answer goes out: who sends or reads slowly has none.
    """

    app: Application
    at_once: int
    _turns: asyncio.Semaphore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._turns = asyncio.Semaphore(self.at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._turns.acquire()
        has_turn = True

        def end() -> None:
            nonlocal has_turn
            if has_turn:
                self._turns.release()
            has_turn = False

        async def sent(message: Message) -> None:
            end()
            await send(message)

        try:
            await self.app(scope, receive, sent)
        finally:
            end()


class _TooLarge(Exception):
    """More was sent than is taken."""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once, whole; then whatever comes after it."""
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _headed(send: Send, clock: Callable[[], datetime]) -> Send:
    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
            now = NOW.encode(), clock().isoformat(timespec="milliseconds").encode()
            message = {**message, "headers": [*message["headers"], *more, now]}
        await send(message)

    return headed


async def _refuse(send: Send, status: int, words: str) -> None:
    """Answer without having read all that was sent, which closes the connection."""
    body = json.dumps({"error": words}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
