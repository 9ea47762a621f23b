"""The action that posts an event to a URL, signed as Standard Webhooks say.

The request carries ``webhook-id`` (the event's id: the receiver's key against doing it twice), ``webhook-timestamp``
and, where there is a secret, ``webhook-signature: v1,<base64 HMAC-SHA256 of "id.timestamp.body">``.
Reference: https://www.standardwebhooks.com
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import httpcore

from opmon.abc import Action
from opmon.errors import DeliveryError, InputError
from opmon.outgoing import overdue
from opmon.outgoing.address import Target, retry_after, target
from opmon.outgoing.breaker import breaker_of
from opmon.outgoing.on_the_way import on_the_way
from opmon.triggers._webhook import TEMPLATES, check_headers, key, signature
from opmon.triggers.guard import Guard, GuardedBackend
from opmon.types import Document
from opmon.waiting import told_as_waiting

_NEVER = (400, 410, 413, 415, 422)
"""What says that no other try can help: this very event is not taken, or no event ever again."""
_MEANING = {
    401: "it does not know who sends. Renew the token, password or secret of the webhook",
    403: "it does not let opmon in. Renew the token, password or secret of the webhook, or its rights there",
    404: "there is nothing at this address. Is the receiver running, and is the path of url right?",
    405: "it takes no POST there. Is the path of url right?",
    407: "a proxy in between wants to know who sends",
    410: "the receiver wants no more events",
    413: "the event is too large for it",
}
_LONGEST_ANSWER = 64 * 1024


@dataclass(frozen=True)
class Webhook(Action):
    """Posts events as JSON to ``url``; delivered is what is answered with 2xx.

    ``timeout`` bounds the whole delivery in seconds, from the name server to the last byte. Redirects are not
    followed. ``allow`` names hosts and networks that are allowed although they are not public; plain http is for
    those only.
    ``secret`` is ``whsec_`` and the base64 of at least 24 random bytes. ``headers`` are sent as they are.
    ``template`` is ``standard``, or ``slack`` for a message that Slack's incoming webhooks take.
    """

    url: str = field(repr=False)
    """Where events are posted to."""
    secret: str | None = field(default=None, repr=False)
    """Signs what is sent (Standard Webhooks): whsec_ and base64."""
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    """Headers to send with it."""
    timeout: float = 10.0
    """Seconds for the whole delivery."""
    allow: tuple[str, ...] = ()
    """Hosts and networks that are allowed although they are not public."""
    template: Literal["standard", "slack"] = "standard"
    """The form of the body: standard, or slack."""

    def __post_init__(self) -> None:
        guard = Guard(self.allow)
        object.__setattr__(self, "allow", tuple(self.allow))
        to = target(self.url)
        if not guard.named(to.host) and to.scheme == "http":
            raise InputError("url must begin with https://; http:// is for hosts named in 'allow'")
        if self.secret is not None:
            key(self.secret)
        if isinstance(self.timeout, bool) or not (math.isfinite(self.timeout) and 0 < self.timeout <= 300):
            raise InputError(f"timeout must be a number of seconds above 0 and at most 300; got {self.timeout!r}")
        check_headers(self.headers or {})
        if self.template not in TEMPLATES:
            raise InputError(f"template must be one of {', '.join(TEMPLATES)}; got {self.template!r}")

    def act(self, event: Document) -> None:
        """Post the event once; :class:`DeliveryError` where it was not taken."""
        to, content = target(self.url), TEMPLATES[self.template](event)
        breaker = breaker_of(to.shown)
        rest = breaker.enter()
        if rest:
            raise DeliveryError(f"{to.shown} did not answer several times running, and is left alone", retry_after=rest)
        try:
            with told_as_waiting(to.shown, self.timeout):
                status, wait = self._posted(to, event, content)
        except (httpcore.TimeoutException, TimeoutError) as exc:
            breaker.failed()
            overdue.count("webhook")
            raise DeliveryError(f"{to.shown} did not answer within {self.timeout:g} s") from exc
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as exc:
            breaker.left()  # told at once: nobody is kept waiting
            why = on_the_way(exc) or exc or type(exc).__name__
            raise DeliveryError(f"{to.shown} could not be reached: {why}") from exc
        except BaseException:
            breaker.left()
            raise
        breaker.answered()
        _judge(to, status, wait)

    def _posted(self, to: Target, event: Document, content: bytes) -> tuple[int, float | None]:
        backend = GuardedBackend(Guard(self.allow), time.monotonic() + self.timeout)
        return _post(to, backend, content, self._headers(to, event, content))

    def _headers(self, to: Target, event: Document, content: bytes) -> list[tuple[str, str]]:
        identifier, seconds = str(event["id"]), str(int(time.time()))
        headers = {
            "Host": to.netloc,
            "User-Agent": "opmon",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "Connection": "close",
            "webhook-id": identifier,
            "webhook-timestamp": seconds,
        }
        if to.authorization is not None:
            headers["Authorization"] = to.authorization
        if self.secret is not None:
            headers["webhook-signature"] = signature(self.secret, identifier, seconds, content)
        given = {name.lower() for name in self.headers or {}}
        ours = [(name, value) for name, value in headers.items() if name.lower() not in given]
        return [*ours, *(self.headers or {}).items()]


def _post(
    to: Target, backend: GuardedBackend, content: bytes, headers: list[tuple[str, str]]
) -> tuple[int, float | None]:
    """The status of the answer, and how many seconds it asks to wait."""
    url = httpcore.URL(scheme=to.scheme, host=to.host, port=to.port, target=to.path)
    with (
        httpcore.ConnectionPool(network_backend=backend) as pool,
        pool.stream("POST", url, headers=headers, content=content) as response,
    ):
        answer = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        if response.status < 300:
            _finish(response)
        return response.status, retry_after(answer.get(b"retry-after"))


def _judge(to: Target, status: int, wait: float | None) -> None:
    """Nothing where the event was taken, else the error that says whether trying again helps."""
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise DeliveryError(
            f"{to.shown} answered {status}, a redirect, which is not followed; put the final address in url",
            final=True,
        )
    did = "refused the event with" if status in _NEVER or status in _MEANING else "answered"
    means = f": {_MEANING[status]}" if status in _MEANING else ""
    raise DeliveryError(f"{to.shown} {did} {status}{means}", final=status in _NEVER, retry_after=wait)


def _finish(response: httpcore.Response) -> None:
    """Read a little of the answer, so that the receiver sees it taken; what happens to the rest matters no more."""
    read = 0
    try:
        for chunk in response.iter_stream():
            read += len(chunk)
            if read > _LONGEST_ANSWER:
                return
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError):
        return
