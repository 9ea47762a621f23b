"""One request for a chat completion: with a deadline, and tried again where that may help."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import httpcore

from opmon.errors import OpmonError, UnavailableError
from opmon.outgoing.address import retry_after, target
from opmon.outgoing.on_the_way import on_the_way
from opmon.outgoing.stream import TimedBackend
from opmon.types import Json

LONGEST_ANSWER = 1 << 20
TOKENS = 300
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
_TRY_AGAIN = (408, 409, 425, 429)
_NOT_THIS_INPUT = (400, 413, 415, 422)
_PATH = "/chat/completions"


class Refused(OpmonError):
    """The service does not take this input; others it may."""


class Unanswered(OpmonError):
    """No try was answered."""


class _Failed(Exception):
    """A try that was not answered; ``wait`` is what the service asks for, in seconds."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True)
class Chat:
    """A language model behind an address."""

    url: str
    model: str
    key: str | None = field(repr=False)
    timeout: float
    tries: int
    options: Mapping[str, object]

    def ask(self, messages: Sequence[Json], over: threading.Event) -> str:
        """What it answers; between tries it waits, unless it is ``over``.

        Raises Refused for an input that it does not take, Unanswered where no try was answered, and UnavailableError
        where it refuses everything, such as for a wrong key.
        """
        options = {"temperature": 0, "max_tokens": TOKENS, **self.options}
        given = {name: value for name, value in options.items() if value is not None}
        content = json.dumps({"model": self.model, "messages": messages, **given})
        for number in range(self.tries):
            try:
                return self._try(content.encode())
            except _Failed as exc:
                if number + 1 == self.tries:
                    raise Unanswered(str(exc)) from exc
                pause = min(FIRST_PAUSE * 2.0**number, LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
                if over.wait(max(pause, min(exc.wait or 0.0, 2 * LONGEST_PAUSE))):
                    raise Unanswered("nobody waits for it any more") from exc
        raise Unanswered("it was not tried")

    def _try(self, content: bytes) -> str:
        to = target(self.url)
        path = to.path if to.path.rstrip("/").endswith(_PATH) else to.path.rstrip("/") + _PATH
        url = httpcore.URL(scheme=to.scheme, host=to.host, port=to.port, target=path)
        headers = [("Host", to.netloc), ("User-Agent", "opmon"), ("Content-Type", "application/json")]
        headers += [("Content-Length", str(len(content))), ("Connection", "close")]
        authorization = to.authorization if self.key is None else f"Bearer {self.key}"
        headers += [] if authorization is None else [("Authorization", authorization)]
        backend = TimedBackend(time.monotonic() + self.timeout)
        try:
            with (
                httpcore.ConnectionPool(network_backend=backend) as pool,
                pool.stream("POST", url, headers=headers, content=content) as response,
            ):
                told = {name.lower(): value.decode("latin-1") for name, value in response.headers}
                self._require(to.shown, response.status, retry_after(told.get(b"retry-after")))
                return _content(_body(response))
        except (httpcore.TimeoutException, TimeoutError) as exc:
            raise _Failed(f"no answer within {self.timeout:g} s") from exc
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as exc:
            raise _Failed(f"it could not be reached: {on_the_way(exc) or exc or type(exc).__name__}") from exc

    def _require(self, shown: str, status: int, wait: float | None) -> None:
        """Nothing where it answered, else the error that says whether trying again helps."""
        if status == 200:
            return
        if status in _TRY_AGAIN or status >= 500:
            raise _Failed(f"it answered {status}", wait)
        if status in _NOT_THIS_INPUT:
            raise Refused(f"{shown} answered {status}")
        raise UnavailableError(
            f"the judge at {shown} answered {status}: check url, model and key of 'judge' (redirects are not followed)"
        )


def _body(response: httpcore.Response) -> bytes:
    body = b""
    for chunk in response.iter_stream():
        body += chunk
        if len(body) > LONGEST_ANSWER:
            raise _Failed(f"it answered more than {LONGEST_ANSWER:,} bytes")
    return body


def _content(body: bytes) -> str:
    """The text of the first choice; an empty one where the language model says nothing."""
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as exc:
        raise _Failed("its answer is no chat completion") from exc
    return content if isinstance(content, str) else ""
