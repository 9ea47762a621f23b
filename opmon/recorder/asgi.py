"""Recording requests and answers of a web application, whatever its framework: FastAPI, Starlette, Litestar, Quart.

::

    app.add_middleware(RecordRequests, recorder=opmon.Recorder("inputs/"), paths=["/predict"])
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from opmon.errors import InputError
from opmon.recorder._entries import Entry, Row, answered, moment, row
from opmon.recorder._ids import new_id
from opmon.recorder._owned import Unwritable, owned
from opmon.recorder.recorder import Recorder

Message = MutableMapping[str, Any]  # as ASGI has it: what a key holds depends on the message's type
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
Read = Callable[[Any, Any], Mapping[str, object]]  # a function of the user's, which knows what its JSON holds
_FLUSH_SECONDS = 5.0
_LONGEST_ID = 200
_NO_REQUESTS = ("OPTIONS", "HEAD")
"""Methods that only ask about what is there: none of them is an input."""


def read_json(request: object, response: object) -> Mapping[str, object]:
    """The whole request as inputs; of the answer ``prediction``, ``scores`` and ``id``, or all of it as prediction."""
    return {"inputs": request, **answered(response)}


class RecordRequests:
    """An ASGI application around another that records the JSON of requests to ``paths`` and of their answers.

    Requests and answers pass as they are, chunk by chunk; they are put together and parsed after the answer is out, in
    the recorder's thread. A request is one input, but by OPTIONS or HEAD none. Only what was answered with a status of
    200 to 299 is recorded; what is larger than ``max_bytes`` is counted as dropped. ``read`` says what is recorded of
    the two: a mapping with ``inputs`` and, where there are any, ``prediction``, ``scores``, ``id``, ``at``,
    ``model_version``. The id is the answer's own, the request's header ``id_header``, or a new one, which the
    application finds in ``scope["opmon.id"]`` and may give back. What waits is written when the application shuts down.
    """

    def __init__(
        self,
        app: App,
        recorder: Recorder,
        paths: Iterable[str] = ("/predict",),
        *,
        max_bytes: int = 1 << 20,
        id_header: str | None = None,
        read: Read = read_json,
    ) -> None:
        if isinstance(paths, str):
            raise InputError(f"paths is a list of paths, such as ['/predict'], which may have *; got {paths!r}")
        self._app, self._recorder, self._paths, self._read = app, recorder, tuple(paths), read
        self._max_bytes = max_bytes
        self._id_header = None if id_header is None else id_header.lower().encode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._flushing(send))
        elif scope["type"] == "http" and self._is_asked(scope):
            await self._recorded(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_asked(self, scope: Message) -> bool:
        """Whether this may be a request to the model; browsers ask with OPTIONS before each of another site's."""
        return scope["method"] not in _NO_REQUESTS and any(fnmatchcase(scope["path"], path) for path in self._paths)

    async def _recorded(self, scope: Message, receive: Receive, send: Send) -> None:
        key = self._key(scope)
        scope["opmon.id"] = key
        heard = _Heard(self._max_bytes)

        async def listening() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                heard.request.add(message.get("body", b""))
            return message

        async def answering(message: Message) -> None:
            await send(message)
            heard.answer(message)

        await self._app(scope, listening, answering)
        if heard.is_good:
            self._record(heard, key)

    def _record(self, heard: _Heard, key: str) -> None:
        if heard.request.too_large or heard.response.too_large:
            self._recorder.drop("too_large")
            return
        response = heard.response.whole() if heard.is_json else b""
        self._recorder.take(Exchange(heard.request.whole(), response, key, self._recorder.model_version, self._read))

    def _key(self, scope: Message) -> str:
        given = next((value for name, value in scope["headers"] if name == self._id_header), b"")
        return given.decode("latin-1") if 0 < len(given) <= _LONGEST_ID else new_id()

    def _flushing(self, send: Send) -> Send:
        async def flushing(message: Message) -> None:
            if message["type"].startswith("lifespan.shutdown."):
                self._recorder.flush(_FLUSH_SECONDS)  # nothing else goes on any more
            await send(message)

        return flushing


class Exchange(Entry):
    """A request and its answer as they came; they are parsed when they are written."""

    __slots__ = ("_held",)

    def __init__(self, request: bytes, response: bytes, key: str, version: str | None, read: Read) -> None:
        self._held = (request, response, key, moment(None), version, read)
        super().__init__(1, 300 + len(request) + len(response))

    def unpacked(self) -> Iterator[Row]:
        request, response, key, at, version, read = self._held
        said = dict(read(json.loads(request), json.loads(response) if response else None))
        if "inputs" not in said:
            raise Unwritable("what 'read' returns has no 'inputs'")
        named = said.get("model_version")
        yield row(
            str(said.get("id") or key),
            at if said.get("at") is None else moment(said["at"]),
            owned(said["inputs"]),
            owned(said.get("prediction")),
            owned(said.get("scores")),
            version if named is None else str(named),
        )


@dataclass(slots=True)
class _Body:
    """The chunks of a body, up to a limit."""

    most: int
    chunks: list[bytes] = field(default_factory=list)
    size: int = 0

    @property
    def too_large(self) -> bool:
        return self.size > self.most

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self.too_large:
            self.chunks.clear()
        elif chunk:
            self.chunks.append(bytes(chunk))

    def whole(self) -> bytes:
        return b"".join(self.chunks)


class _Heard:
    """What was heard of a request and its answer."""

    def __init__(self, most: int) -> None:
        self.request, self.response = _Body(most), _Body(most)
        self.is_json = self.is_good = False
        self._status = 0

    def answer(self, message: Message) -> None:
        """Take a message of the answer, after it was sent."""
        if message["type"] == "http.response.start":
            headers = {name.lower(): value for name, value in message.get("headers", ())}
            self._status = message["status"]
            self.is_json = b"json" in headers.get(b"content-type", b"") and b"content-encoding" not in headers
        elif message["type"] == "http.response.body":
            if self.is_json:
                self.response.add(message.get("body", b""))
            self.is_good = 200 <= self._status < 300 and not message.get("more_body", False)
