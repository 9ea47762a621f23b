"""The endpoint as an ASGI application: ``POST /v1/ingest/<monitor>``, and ``GET /healthz``."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

from opmon.attempts import Attempts, counted_as
from opmon.ingest.event import Event
from opmon.ingest.messages import events_of
from opmon.ingest.packed import unpacked
from opmon.ingest.refused import Refused

log = logging.getLogger(__name__)

Message: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

PATH = "/v1/ingest/"
MOST_WAITING = 64 << 20
"""Bytes of all requests that are under way."""
_BODY_SECONDS = 30.0
"""A body that has not come after so long is given up."""


class Keeper(Protocol):
    """Keeps events."""

    def keep(self, stream: str, events: list[Event]) -> asyncio.Future[int]:
        """How many were new, once all are safe; an OSError where there is no room for them."""
        ...


@dataclass
class App:
    """Takes what is sent; it answers 2xx when that is safe."""

    keeper: Keeper
    streams: Collection[str]
    token: str | None = None
    max_body: int = 8 << 20
    most_waiting: int = MOST_WAITING
    body_seconds: float = _BODY_SECONDS
    attempts: Attempts = field(default_factory=Attempts, repr=False)
    _waiting: int = field(default=0, repr=False)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        try:
            status, told = 200, await self._answer(scope, receive)
        except Refused as exc:
            await _send(send, exc.status, {"error": exc.words}, exc.retry_after)
        except _Gone:
            return
        except Exception:
            log.exception("a request to %s failed", str(scope.get("path"))[:200])
            await _send(send, 500, {"error": "a fault in opmon: its log says more; nothing of this request was kept"})
        else:
            await _send(send, status, told, close=False)

    async def _answer(self, scope: Mapping[str, Any], receive: Receive) -> Mapping[str, object]:
        path, method = str(scope["path"]), scope["method"]
        if path == "/healthz" and method in ("GET", "HEAD"):
            return {"status": "ok"}
        if not path.startswith(PATH):
            raise Refused(404, f"there is nothing here; send to {PATH}<monitor>")
        if method != "POST":
            raise Refused(405, "only POST is answered here")
        headers = {name.decode("latin-1").lower(): told.decode("latin-1") for name, told in scope["headers"]}
        self._require_token(headers.get("authorization", ""), counted_as((scope.get("client") or ("", 0))[0]))
        stream = path.removeprefix(PATH)
        if stream not in self.streams:
            raise Refused(404, "this monitor is unknown, or its source is not 'ingest'")
        taken = _Taken(self)
        try:
            sent = await asyncio.wait_for(self._body(headers, receive, taken), self.body_seconds)
            body = unpacked(sent, headers.get("content-encoding", ""), self.max_body, taken.take)
            events = events_of(headers, body, datetime.now(UTC).isoformat())
            if not events:
                return {"kept": 0, "known": 0}
            new = await self.keeper.keep(stream, events)
            return {"kept": new, "known": len(events) - new}
        except TimeoutError:
            raise Refused(408, f"the body did not come within {self.body_seconds:g} s") from None
        except OSError as exc:
            raise Refused(503, "nothing was kept: opmon cannot write it down; send it again later", 30) from exc
        finally:
            taken.give_back()

    async def _body(self, headers: Mapping[str, str], receive: Receive, taken: _Taken) -> bytes:
        said = headers.get("content-length", "")
        if said.isdigit() and int(said) > self.max_body:
            raise self._too_large()
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            piece = message.get("body", b"")
            size += len(piece)
            if size > self.max_body:
                raise self._too_large()
            taken.take(len(piece))
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)

    def _too_large(self) -> Refused:
        return Refused(413, f"the body is larger than {self.max_body:,} bytes (ingest: max_body)")

    def _require_token(self, given: str, address: str) -> None:
        """An error unless the sender knows the token: as Bearer, or as the password of Basic, as in a URL.

        Whoever knows it is never held up by others behind the same address who do not.
        """
        if self.token is None:
            return
        kind, _, value = given.partition(" ")
        if kind.lower() == "basic":
            value = _password(value)
        elif kind.lower() != "bearer":
            value = ""
        if not hmac.compare_digest(_hashed(value.strip()), _hashed(self.token)):
            wait = self.attempts.seconds_to_wait(address, "")
            if wait:
                raise Refused(429, f"too many wrong tokens came from here: try again in {wait} s", wait)
            self.attempts.was_wrong(address)
            raise Refused(401, "the token is missing or wrong: send Authorization: Bearer <token>")


class _Gone(Exception):
    """The sender left before all was sent."""


@dataclass
class _Taken:
    """The room that one request takes."""

    app: App
    size: int = 0

    def take(self, size: int) -> None:
        if self.app._waiting + size > self.app.most_waiting:
            raise Refused(429, "more is sent than the disk takes: send it again in a second", 1)
        self.app._waiting += size
        self.size += size

    def give_back(self) -> None:
        self.app._waiting -= self.size
        self.size = 0


def _hashed(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _password(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""


async def _send(
    send: Send, status: int, told: Mapping[str, object], retry_after: int | None = None, close: bool = True
) -> None:
    """Answer; a request that is refused may not have been read to its end, which closes the connection."""
    body = json.dumps(told).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers += [(b"retry-after", b"%d" % retry_after)] if retry_after is not None else []
    headers += [(b"connection", b"close")] if close else []
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    headers += [(b"allow", b"POST")] if status == 405 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
