"""Who is asking: by token, by session, or, where nobody was ever given a token, by name.

Programs send ``Authorization: Bearer <token>``. A browser signs in with the token and gets a session as a cookie that
scripts cannot read and other sites cannot use; what changes something must also carry the session's CSRF token.

While nobody has a token, only this machine may ask, and a name is enough. A page of another site that is open in a
browser here may try to ask as well: so the name comes in a header or a session, which such a page cannot send, under a
host name of this machine, and not through a proxy.

Where a proxy says who asks (``web: identity:``), it is believed if the request comes from its address, and a request
from elsewhere that says so is refused. The proxy lets browsers in by a cookie of its own, so what changes something
must come from our own pages there too.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from fastapi import Request

from opmon.attempts import Attempts, counted_as
from opmon.config import Settings
from opmon.config.identity import IdentitySettings
from opmon.config.listening import is_loopback
from opmon.errors import InputError
from opmon.rates import Rates
from opmon.store import annotators, audit
from opmon.store.annotators import Annotator, Claimed, Session
from opmon.store.audit import Act, Entry
from opmon.store.engine import Connection, Store
from opmon.web.forms import FORM
from opmon.web.origin import origin_of
from opmon.web.proxied import standing_of
from opmon.web.refused import Refused
from opmon.web.remembered import Remembered
from opmon.web.secrets import csrf_of, new_token, sha256_of, usable_name

COOKIE = "opmon_session"
NAME_HEADER = "opmon-annotator"
CSRF_HEADER = "x-csrf-token"
Found = TypeVar("Found")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LONGEST_TOKEN = 300
_AT_ONCE = 10
_ASIDES = 5.0
_SIGN_INS, _SIGN_INS_AT_ONCE = 0.2, 60
REMEMBERED = 2.0
"""Seconds for which a token, or that none is needed, is remembered: so late a revoked one still works at most."""


@dataclass(frozen=True)
class Person:
    """Whoever asks."""

    name: str
    role: str
    monitors: tuple[str, ...] | None
    """None: all of them."""
    by: str
    """``token``, ``session``, ``proxy`` or ``name``."""
    csrf: str = ""
    origin: str = ""
    """The address they ask from."""

    def sees(self, monitor: str) -> bool:
        return self.monitors is None or monitor in self.monitors

    @property
    def labels(self) -> bool:
        """Whether they may take tasks and answer them."""
        return self.role in ("annotator", "operator")

    @property
    def watches(self) -> bool:
        """Whether they may see how models do; annotators must not learn what the model says."""
        return self.role in ("viewer", "operator")

    @property
    def acts(self) -> bool:
        """Whether they may take events on and have them sent again."""
        return self.role == "operator"

    def did(self, act: Act, at: datetime, about: str = "", monitor: str | None = None, times: int = 1) -> Entry:
        """What is noted of something that they did."""
        return Entry(at, act, self.name, self.by, self.origin, monitor, about, times)


@dataclass
class Door:
    """Lets people in."""

    settings: Settings
    store: Store
    clock: Callable[[], datetime]
    attempts: Attempts = field(default_factory=Attempts)
    is_guest: bool = False
    """Whether another server, which listens where it likes, holds the pages."""
    _rates: Rates = field(init=False, repr=False)
    _asides: Rates = field(default_factory=lambda: Rates(_ASIDES, 2 * _ASIDES), repr=False)
    """Tokens of an address that is closed are looked at, now and then: whoever shares it with a fool is let in."""
    _sign_ins: Rates = field(default_factory=lambda: Rates(_SIGN_INS, _SIGN_INS_AT_ONCE), repr=False)
    _by_hash: Remembered[str, Claimed] = field(default_factory=lambda: Remembered(REMEMBERED), repr=False)
    _by_name: Remembered[str, Annotator] = field(default_factory=lambda: Remembered(REMEMBERED), repr=False)
    _sessions: Remembered[str, Session] = field(default_factory=lambda: Remembered(REMEMBERED), repr=False)
    _guarded: Remembered[str, bool] = field(default_factory=lambda: Remembered(REMEMBERED), repr=False)

    def __post_init__(self) -> None:
        rate = self.settings.web.rate
        self._rates = Rates(rate, _AT_ONCE * rate)

    def whoever(self, request: Request) -> Person:
        """Who sent a request; a refusal where that cannot be said, or where they send too many."""
        person = self._whoever(request)
        request.scope["opmon.person"] = person
        wait = self._rates.seconds_to_wait(person.name)
        if wait:
            words = f"{person.name} sends more than {self.settings.web.rate} requests a second (web: rate)"
            raise Refused(429, words, retry_after=wait)
        return person

    def _whoever(self, request: Request) -> Person:
        proxies = self.settings.web.identity
        if proxies is not None and proxies.header in request.headers:
            return self._by_proxy(request, proxies)
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind:
            if kind.lower() != "bearer":
                raise Refused(401, "send Authorization: Bearer <token>; no other kind is known here")
            return self.by_token(request, given.strip())
        session = request.cookies.get(COOKIE)
        if session:
            person = self._by_session(request, session)
            if person is not None:
                return person
        if NAME_HEADER in request.headers:
            return self.by_name(request, _utf8(request.headers[NAME_HEADER]))
        raise Refused(401, self._how())

    def knows(self, request: Request) -> bool:
        """Whether :meth:`whoever` can tell without asking the database, so that it takes no time."""
        if self._proxies is not None and self._proxies.header in request.headers:
            return False
        _, _, token = request.headers.get("authorization", "").partition(" ")
        if token:
            return self._by_hash.knows(sha256_of(token.strip()[:_LONGEST_TOKEN]))
        session = request.cookies.get(COOKIE)
        return self._guarded.knows("") and (not session or self._sessions.knows(sha256_of(session)))

    def by_token(self, request: Request, token: str) -> Person:
        """Whose token it is."""
        origin = self.origin(request)
        address, token_hash = counted_as(origin), sha256_of(token[:_LONGEST_TOKEN])
        wait = self.attempts.seconds_to_wait(address, token_hash)
        too_many = f"too many wrong tokens came from here: try again in {wait} s"
        if wait and self._asides.seconds_to_wait(address):
            raise Refused(429, too_many, retry_after=wait)
        claimed = self._by_hash.get(
            token_hash, lambda: self._read(lambda connection: annotators.claimed(connection, token_hash))
        )
        found = None if claimed is None else claimed.whose(token_hash, self.clock())
        if found is None:
            if wait:
                raise Refused(429, too_many, retry_after=wait)
            self.attempts.was_wrong(address)
            words = "this token is unknown, has run out or was taken away: ask whoever runs opmon for another"
            raise Refused(401, words)
        self.attempts.was_right(token_hash)
        return Person(found.name, found.role, found.monitors, "token", origin=origin)

    def open_session(self, person: Person) -> tuple[str, int]:
        """Keep a browser signed in: the session's secret, and for how many seconds it is good."""
        wait = self._sign_ins.seconds_to_wait(person.name)
        if wait:
            raise Refused(429, f"{person.name} signs in too often: try again in {wait} s", retry_after=wait)
        secret, lasts = new_token(), self.settings.web.session
        now = self.clock()
        with self.store.write() as connection:
            known = annotators.get(connection, person.name) if person.by == "token" else None
            opened = Session(person.name, now + lasts, known)
            annotators.open_session(connection, sha256_of(secret), opened, now)
            audit.note(connection, person.did(Act.SIGNED_IN, now))
        return secret, int(lasts / timedelta(seconds=1))

    def by_name(self, request: Request, name: str) -> Person:
        """Somebody who only says a name; a refusal where tokens are asked for."""
        if self.asks_for_tokens():
            raise Refused(401, self._how())
        self._require_this_machine(request)
        try:
            return Person(usable_name(name), "operator", None, "name", origin=self.origin(request))
        except InputError as exc:
            raise Refused(422, str(exc)) from exc

    def close_session(self, request: Request, secret: str) -> None:
        now, session_hash = self.clock(), sha256_of(secret)
        with self.store.write() as connection:
            session = annotators.session_of(connection, session_hash, now)
            annotators.close_session(connection, session_hash)
            if session is not None:
                audit.note(connection, Entry(now, Act.SIGNED_OUT, session.name, "session", self.origin(request)))
        self._sessions.forget(sha256_of(secret))

    def asks_for_tokens(self) -> bool:
        """Whether a name is not enough: anybody was ever given a token, or a proxy says who asks."""
        if self._proxies is not None:
            return True
        return bool(self._guarded.get("", lambda: self._read(annotators.is_guarded)))

    def origin(self, request: Request) -> str:
        """The address that a request comes from."""
        return origin_of(request, self._proxies)

    @property
    def _proxies(self) -> IdentitySettings | None:
        return self.settings.web.identity

    def _by_proxy(self, request: Request, proxies: IdentitySettings) -> Person:
        peer = request.client.host if request.client else ""
        if not proxies.trusts(peer):
            words = f"{peer} may not say in the header {proxies.header} who asks: it is none of web: identity: trusted"
            raise Refused(403, words)
        given = request.headers.getlist(proxies.header)
        if len(given) != 1:
            raise Refused(403, f"the header {proxies.header} came {len(given)} times: the proxy must set it once")
        try:
            name = usable_name(_utf8(given[0]))
        except InputError as exc:
            raise Refused(403, f"the header {proxies.header} holds no name: {exc}") from exc
        csrf = csrf_of(name)
        if request.method not in _SAFE:
            self._require_own_page(request, csrf)
        role, monitors = self._standing(request, proxies, name)
        return Person(name, role, monitors, "proxy", csrf, self.origin(request))

    def _standing(self, request: Request, proxies: IdentitySettings, name: str) -> tuple[str, tuple[str, ...] | None]:
        """The role that somebody was given by their name, or else by their groups."""
        own = self._by_name.get(name, lambda: self._read(lambda connection: annotators.get(connection, name)))
        if own is not None:
            if own.is_let_in(self.clock()):
                return own.role, own.monitors
            raise Refused(403, f"{name} was let in once and is no more: ask whoever runs opmon")
        lines = [] if proxies.groups is None else request.headers.getlist(proxies.groups)
        groups = [_utf8(each).strip() for line in lines for each in line.split(",")]
        standing = standing_of(proxies, groups)
        if standing is None:
            raise Refused(403, f"{name} is in no group that may use opmon: ask whoever runs opmon (web: identity)")
        return standing.role, standing.monitors

    def _require_own_page(self, request: Request, csrf: str) -> None:
        """A refusal unless one of our own pages sends this: another site knows no token, and can set no header."""
        self.require_same_site(request)
        given = request.headers.get(CSRF_HEADER) or request.scope.get(FORM, {}).get("csrf", "")
        if not hmac.compare_digest(given.encode(), csrf.encode()):
            raise Refused(403, f"what changes something needs the header {CSRF_HEADER}: reload the page")

    def _read(self, find: Callable[[Connection], Found]) -> Found:
        with self.store.read() as connection:
            return find(connection)

    def require_same_site(self, request: Request) -> None:
        """A refusal where another site made the browser send this."""
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        own = {request.headers.get("host"), urlsplit(self.settings.web.address).netloc}
        if site not in ("same-origin", "none") or (origin and origin.partition("://")[2] not in own):
            raise Refused(403, "this was sent by a page of another site")

    def _by_session(self, request: Request, secret: str) -> Person | None:
        session_hash = sha256_of(secret)
        session = self._sessions.get(
            session_hash,
            lambda: self._read(lambda connection: annotators.session_of(connection, session_hash, self.clock())),
        )
        if session is None or (session.annotator is None and self.asks_for_tokens()):
            return None  # it may have begun with a name, before the first token was given
        csrf = csrf_of(secret)
        if request.method not in _SAFE:
            self._require_own_page(request, csrf)
        known, origin = session.annotator, self.origin(request)
        if known is None:
            self._require_this_machine(request)
            return Person(session.name, "operator", None, "session", csrf, origin)
        if not known.is_let_in(self.clock()):
            return None
        return Person(known.name, known.role, known.monitors, "session", csrf, origin)

    def _require_this_machine(self, request: Request) -> None:
        host = re.sub(r":\d*$", "", request.headers.get("host", "")).strip("[]")
        proxied = "forwarded" in request.headers or "x-forwarded-for" in request.headers
        if not self._is_near(request) or host not in ("localhost", "127.0.0.1", "::1") or proxied:
            raise Refused(
                403,
                "without tokens only this machine may ask, at http://127.0.0.1 or http://localhost and through no "
                "proxy: give people tokens with opmon annotators add NAME",
            )

    def _is_near(self, request: Request) -> bool:
        """Whether no other machine can have sent this."""
        if not self.is_guest:
            return self.settings.web.is_loopback
        ends = (request.scope.get("server"), request.scope.get("client"))
        return all(end is not None and is_loopback(end[0]) for end in ends)

    def _how(self) -> str:
        if self._proxies is not None:
            return "say who you are: come through the proxy that knows you, or send Authorization: Bearer <token>"
        if self.asks_for_tokens():
            return "say who you are: send Authorization: Bearer <token>, or sign in at /sign-in"
        return f"say who you are: send the header {NAME_HEADER}: <your name>, or sign in at /sign-in"


def _utf8(text: str) -> str:
    """A header as its sender meant it: they are read as Latin-1, and written as UTF-8."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
