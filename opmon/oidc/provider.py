"""The provider: what it says of itself, its keys, and the ID token that it gives for a code; each within a deadline."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

import httpcore

from opmon.config.oidc import OidcSettings, is_safe
from opmon.errors import InputError
from opmon.oidc.tokens import Signed, key_for
from opmon.oidc.untrusted import Unreachable, Untrusted
from opmon.outgoing.address import target
from opmon.outgoing.breaker import breaker_of
from opmon.outgoing.on_the_way import on_the_way
from opmon.outgoing.stream import TimedBackend
from opmon.types import Json
from opmon.wording import counted

_LONGEST_ANSWER = 1 << 20
_GOOD_FOR = 3600.0
"""Seconds after which its description and its keys are asked for again."""
_KEYS_AT_MOST_EVERY = 30.0
"""Seconds between two looks for a key that is not known: tokens with a made-up one cause no more."""
_AT_ONCE = 2
"""Requests to it at a time: one that hangs leaves the other threads of the pages alone."""
_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass
class Provider:
    """What opmon knows of the provider, asked for when it is first needed."""

    settings: OidcSettings
    monotonic: Callable[[], float] = time.monotonic
    _about: Mapping[str, Json] = field(default_factory=dict, init=False)
    _about_until: float = field(default=float("-inf"), init=False)
    _keys: Sequence[Mapping[str, Json]] = field(default=(), init=False)
    _keys_at: float = field(default=float("-inf"), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _room: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(_AT_ONCE), init=False, repr=False
    )

    def check(self) -> str:
        """That the provider answers, in words; an error that says what does not fit."""
        self._described()
        return f"{self.settings.shown} answers, with {counted(len(self._asked_for_keys()), 'key')}"

    def endpoint(self, name: str) -> str:
        """An address of the provider, by what its description calls it."""
        return str(self._described()[name])

    def sign_out(self, back: str) -> str | None:
        """Where one signs out of the provider and comes back; None where it has no such page, or is not known yet."""
        address = self._about.get("end_session_endpoint")
        if not isinstance(address, str) or not self._is_ours(address):
            return None
        more = urlencode({"client_id": self.settings.client_id, "post_logout_redirect_uri": back})
        return f"{address}{'&' if '?' in address else '?'}{more}"

    def key(self, signed: Signed) -> Mapping[str, Json]:
        """The key that may have signed a token; one that is new is asked for."""
        with self._lock:
            keys, age = self._keys, self.monotonic() - self._keys_at
        found = key_for(signed, keys if age < _GOOD_FOR else ())
        if found is None and age >= _KEYS_AT_MOST_EVERY:
            found = key_for(signed, self._asked_for_keys())
        if found is None:
            raise Untrusted("the ID token is signed with a key that the provider does not have")
        return found

    def id_token(self, code: str, verifier: str, back: str) -> object:
        """What the provider gives for a code, which it takes once."""
        own = self.settings
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if own.client_secret is None:
            form["client_id"] = own.client_id
        elif self._takes_basic():
            pair = f"{quote(own.client_id, safe='')}:{quote(own.client_secret.get_secret_value(), safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": own.client_id, "client_secret": own.client_secret.get_secret_value()}
        status, answer = self._asked("POST", self.endpoint("token_endpoint"), headers, urlencode(form).encode())
        if status == 200:
            return answer.get("id_token")
        told = str(answer.get("error", ""))[:60]
        if told in ("invalid_client", "unauthorized_client"):
            raise Unreachable(
                f"{own.shown} does not know opmon ({told}): check client_id and client_secret of web: oidc"
            )
        if 400 <= status < 500:
            raise Untrusted(f"{own.shown} does not take this sign-in" + (f" ({told})" if told.isidentifier() else ""))
        raise Unreachable(f"{own.shown} answered {status}")

    def _takes_basic(self) -> bool:
        methods = self._described().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        told = methods if isinstance(methods, list) else []
        return "client_secret_basic" in told or "client_secret_post" not in told

    def _described(self) -> Mapping[str, Json]:
        """What the provider says of itself."""
        with self._lock:
            if self.monotonic() < self._about_until:
                return self._about
        issuer, shown = self.settings.issuer, self.settings.shown
        status, about = self._asked("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if status != 200:
            raise Unreachable(f"{shown} answered {status} and does not describe itself: check web: oidc: issuer")
        if about.get("issuer") != issuer:
            told = repr(about.get("issuer"))[:200]
            raise Unreachable(
                f"{shown} calls itself {told}, and not {issuer!r}: write its own words in web: oidc: issuer"
            )
        for name in _NEEDED:
            address = about.get(name)
            if not isinstance(address, str) or not self._is_ours(address):
                raise Unreachable(
                    f"{shown} has no {name} that is a safe address: opmon cannot let people sign in there"
                )
        with self._lock:
            self._about, self._about_until = about, self.monotonic() + _GOOD_FOR
        return about

    def _is_ours(self, address: str) -> bool:
        """Whether the address is one that a browser or opmon may be sent to."""
        try:
            target(address)
        except InputError:
            return False
        return is_safe(address) and (address.startswith("https://") or self.settings.issuer.startswith("http://"))

    def _asked_for_keys(self) -> Sequence[Mapping[str, Json]]:
        status, answer = self._asked("GET", self.endpoint("jwks_uri"))
        listed = answer.get("keys")
        if status != 200 or not isinstance(listed, list):
            raise Unreachable(f"{self.settings.shown} does not tell its keys (it answered {status})")
        keys = [each for each in listed if isinstance(each, dict)]
        with self._lock:
            self._keys, self._keys_at = keys, self.monotonic()
        return keys

    def _asked(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, content: bytes = b""
    ) -> tuple[int, Mapping[str, Json]]:
        """The answer of the provider; one that does not answer is left alone for a while."""
        shown, breaker = self.settings.shown, breaker_of(f"oidc {self.settings.shown}")
        if breaker.enter():
            raise Unreachable(f"{shown} did not answer several times running, and is left alone: try again in a minute")
        if not self._room.acquire(blocking=False):
            breaker.left()
            raise Unreachable(f"{shown} is slow to answer others who sign in: try again")
        try:
            found = _answer(method, url, headers or {}, content, self.settings.patience.total_seconds())
        except (httpcore.TimeoutException, TimeoutError) as exc:
            breaker.failed()
            raise Unreachable(f"{shown} did not answer within {self.settings.patience.total_seconds():g} s") from exc
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as exc:
            breaker.left()
            raise Unreachable(f"{shown} could not be reached: {on_the_way(exc) or exc or type(exc).__name__}") from exc
        except BaseException:
            breaker.left()
            raise
        finally:
            self._room.release()
        breaker.answered()
        return found


def _answer(
    method: str, url: str, headers: Mapping[str, str], content: bytes, seconds: float
) -> tuple[int, Mapping[str, Json]]:
    """The status, and the JSON object that was answered; an empty one where it is none. No redirect is followed."""
    to = target(url)
    address = httpcore.URL(scheme=to.scheme, host=to.host, port=to.port, target=to.path)
    own = {"Host": to.netloc, "User-Agent": "opmon", "Accept": "application/json", "Connection": "close"}
    own |= {"Content-Length": str(len(content))} if content else {}
    body = b""
    with (
        httpcore.ConnectionPool(
            ssl_context=ssl.create_default_context(), network_backend=TimedBackend(time.monotonic() + seconds)
        ) as pool,
        pool.stream(method, address, headers=[*own.items(), *headers.items()], content=content) as response,
    ):
        for chunk in response.iter_stream():
            body += chunk
            if len(body) > _LONGEST_ANSWER:
                raise Unreachable(f"{to.shown} answered more than {_LONGEST_ANSWER:,} bytes")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    return response.status, found if isinstance(found, dict) else {}
