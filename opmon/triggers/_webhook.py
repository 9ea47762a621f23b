"""The pure parts of a webhook: its body, signature and headers."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import re
from collections.abc import Callable, Mapping

from opmon.errors import InputError
from opmon.types import Document

PREFIX = "whsec_"
_MAKE_ONE = "python -c \"import base64, secrets; print('whsec_' + base64.b64encode(secrets.token_bytes(32)).decode())\""
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?\Z")
_OURS = ("host", "content-length", "content-type", "transfer-encoding", "connection")
_LONGEST_MESSAGE = 3000
_LINKS = (("run_uri", "run"), ("failures_uri", "failures"))


def body(event: Document) -> bytes:
    """The event as it is posted: ``type``, ``timestamp`` and all the rest in ``data``."""
    data = {key: value for key, value in event.items() if key not in ("type", "at")}
    message = {"type": event["type"], "timestamp": event["at"], "data": data}
    return json.dumps(finite(message), ensure_ascii=False, allow_nan=False, default=str).encode()


def slack(event: Document) -> bytes:
    """The event as a message for Slack's incoming webhooks; Mattermost and Rocket.Chat take the same."""
    model, signs = event.get("model") or {}, {"opmon.alarm": ":red_circle:", "opmon.recovered": ":large_green_circle:"}
    signs |= {"opmon.silent": ":red_circle:", "opmon.heard": ":large_green_circle:"}
    head = f"{signs.get(str(event['type']), ':information_source:')} *{_plain(event.get('monitor'))}*"
    about = [f"{_plain(model.get('name'))} version {_plain(model.get('version'))}"] if model else []
    about += [] if event.get("round") is None else [f"round {_plain(event.get('round'))}"]
    lines = [f"{head} {_plain(event['type']).removeprefix('opmon.')}: {_plain(event.get('rule'))}", ", ".join(about)]
    lines += [_plain(event.get("message"))]
    lines += [f"{name}: {_plain(event[key])}" for key, name in _LINKS if event.get(key)]
    return json.dumps({"text": "\n".join(lines)[:_LONGEST_MESSAGE]}, ensure_ascii=False).encode()


TEMPLATES: Mapping[str, Callable[[Document], bytes]] = {"standard": body, "slack": slack}
"""How an event can be put into the request."""


def _plain(value: object) -> str:
    """Text without what Slack would take for markup, links or mentions."""
    return str("" if value is None else value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def signature(secret: str, identifier: str, timestamp: str, content: bytes) -> str:
    """The signature of Standard Webhooks.

    >>> key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    signed = f"{identifier}.{timestamp}.".encode() + content
    return "v1," + base64.b64encode(hmac.new(key(secret), signed, hashlib.sha256).digest()).decode()


def key(secret: str) -> bytes:
    problem = InputError(
        f"secret must be {PREFIX} followed by the base64 of at least 24 random bytes; make one: {_MAKE_ONE}"
    )
    if not isinstance(secret, str) or not secret.startswith(PREFIX):
        raise problem
    encoded = secret.removeprefix(PREFIX)
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise problem from None
    if len(decoded) < 24:
        raise problem
    return decoded


def check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.match(name):
            raise InputError(  # without the name: whoever wrote the whole header there wrote a secret
                "headers has a name that is no header: write it as a key such as X-Token, and what it says as its value"
            )
        if name.lower() in _OURS or name.lower().startswith("webhook-"):
            raise InputError(f"headers must not set {name!r}: opmon sets it itself")
        if not isinstance(value, str) or not _HEADER_VALUE.match(value):
            raise InputError(f"headers: the value of {name!r} must be one line of plain ASCII text")


def finite(value: object) -> object:
    """The value with NaN and infinities as null, which JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value
