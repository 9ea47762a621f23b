"""Who is asking: by token, by session, or, where nobody was ever given a token, by name.

Programs send ``Authorization: Bearer <token>``. A browser signs in with the token and gets a session as a cookie that
scripts cannot read and other sites cannot use; what changes something must also carry the session's CSRF token.

While nobody has a token, only this machine may ask, and a name is enough. A page of another site that is open in a
browser here may try to ask as well: so the name comes in a header or a session, which such a page cannot send, under a
host name of this machine, and not through a proxy. Where ``web: url`` names another machine, a proxy is in front, which
may hide that it is: a name alone then lets nobody in.

Where a proxy says who asks (``web: identity:``), it is believed if the request comes from its address, and a request
from elsewhere that says so is refused. The proxy lets browsers in by a cookie of its own, so what changes something
must come from our own pages there too.

Where browsers sign in at a provider (``web: oidc:``), they get a session as with a token; it holds the groups that the
provider told, and what they may do goes by the configuration as it is now.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from fastapi import Request

from opmon.attempts import Attempts, counted_as
from opmon.config import Settings
from opmon.config.identity import IdentitySettings, RolesOfGroups
from opmon.errors import InputError
from opmon.rates import Rates
from opmon.store import annotators, audit
from opmon.store.annotators import Annotator, Claimed, Session
from opmon.store.audit import Act, Entry
from opmon.store.engine import Connection, Store
from opmon.web.cookies import sessions_in
from opmon.web.forms import FORM
from opmon.web.origin import origin_of
from opmon.web.proxied import standing_of, told_by
from opmon.web.refused import Refused
from opmon.web.remembered import Remembered
from opmon.web.secrets import csrf_of, new_token, sha256_of, usable_name
from opmon.web.sent import both_ends_are_here, meant, require_same_site, require_this_machine

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
    """``token``, ``session``, ``proxy``, ``oidc`` or ``name``."""
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
    """What comes from a closed address is looked at, now and then: whoever shares it with a fool is let in."""
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
        for session in sessions_in(request):
            person = self._by_session(request, session)
            if person is not None:
                return person
        if NAME_HEADER in request.headers:
            return self.by_name(request, meant(request.headers[NAME_HEADER]))
        raise Refused(401, self._how())

    def knows(self, request: Request) -> bool:
        """Whether :meth:`whoever` can tell without asking the database, so that it takes no time."""
        if self._proxies is not None and self._proxies.header in request.headers:
            return False
        _, _, token = request.headers.get("authorization", "").partition(" ")
        if token:
            return self._by_hash.knows(sha256_of(token.strip()[:_LONGEST_TOKEN]))
        known = [self._sessions.knows(sha256_of(each)) for each in sessions_in(request)]
        return self._guarded.knows("") and all(known)

    def by_token(self, request: Request, token: str) -> Person:
        """Whose token it is."""
        origin = self.origin(request)
        address, token_hash = counted_as(origin), sha256_of(token[:_LONGEST_TOKEN])
        closed = self.closed(address, "too many wrong tokens came from here: try again in {} s", token_hash)
        claimed = self._by_hash.get(
            token_hash, lambda: self._read(lambda connection: annotators.claimed(connection, token_hash))
        )
        found = None if claimed is None else claimed.whose(token_hash, self.clock())
        if found is None:
            if closed is not None:
                raise closed
            self.attempts.was_wrong(address)
            words = "this token is unknown, has run out or was taken away: ask whoever runs opmon for another"
            raise Refused(401, words)
        self.attempts.was_right(token_hash)
        return Person(found.name, found.role, found.monitors, "token", origin=origin)

    def closed(self, address: str, words: str, token_hash: str = "") -> Refused | None:
        """What is told if this proves wrong, where too much from its address did; raised if it is not looked at."""
        wait = self.attempts.seconds_to_wait(address, token_hash)
        if not wait:
            return None
        refusal = Refused(429, words.format(wait), retry_after=wait)
        if self._asides.seconds_to_wait(address):
            raise refusal
        return refusal

    def by_provider(self, request: Request, name: str, groups: Sequence[str], known: RolesOfGroups) -> Person:
        """Somebody whom the provider knows by this name and in these groups."""
        try:
            name = usable_name(name)
        except InputError as exc:
            raise Refused(403, f"the provider told no name: {exc}") from exc
        role, monitors = self._standing(known, name, groups)
        return Person(name, role, monitors, "oidc", origin=self.origin(request))

    def open_session(self, person: Person, groups: Sequence[str] | None = None) -> tuple[str, int]:
        """Keep a browser signed in: the session's secret, and for how many seconds it is good.

        ``groups`` are those that the provider told, where it did.
        """
        wait = self._sign_ins.seconds_to_wait(person.name)
        if wait:
            raise Refused(429, f"{person.name} signs in too often: try again in {wait} s", retry_after=wait)
        oidc = self.settings.web.oidc
        secret, lasts = new_token(), self.settings.web.session if groups is None or oidc is None else oidc.session
        now = self.clock()
        with self.store.write() as connection:
            known = annotators.get(connection, person.name) if person.by == "token" else None
            opened = Session(person.name, now + lasts, known, None if groups is None else tuple(groups))
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
        """Whether a name is not enough: anybody was ever given a token, or a proxy or a provider says who asks."""
        if self.settings.web.known_elsewhere is not None:
            return True
        return bool(self._guarded.get("", lambda: self._read(annotators.is_guarded)))

    def origin(self, request: Request) -> str:
        """The address that a request comes from."""
        return origin_of(request, self._proxies)

    @property
    def _proxies(self) -> IdentitySettings | None:
        return self.settings.web.identity

    def _by_proxy(self, request: Request, proxies: IdentitySettings) -> Person:
        name, groups = told_by(proxies, request)
        csrf = csrf_of(name)
        if request.method not in _SAFE:
            self._require_own_page(request, csrf)
        role, monitors = self._standing(proxies, name, groups)
        return Person(name, role, monitors, "proxy", csrf, self.origin(request))

    def _standing(self, known: RolesOfGroups, name: str, groups: Sequence[str]) -> tuple[str, tuple[str, ...] | None]:
        """The role that somebody was given by their name, or else by their groups."""
        own = self._by_name.get(name, lambda: self._read(lambda connection: annotators.get(connection, name)))
        if own is not None:
            if own.is_let_in(self.clock()):
                return own.role, own.monitors
            raise Refused(403, f"{name} was let in once and is no more: ask whoever runs opmon")
        standing = standing_of(known, groups)
        if standing is None:
            key = "identity" if self.settings.web.oidc is None else "oidc"
            raise Refused(403, f"{name} is in no group that may use opmon: ask whoever runs opmon (web: {key})")
        return standing.role, standing.monitors

    def _require_own_page(self, request: Request, csrf: str) -> None:
        """A refusal unless one of our own pages sends this: another site knows no token, and can set no header."""
        require_same_site(request, self.settings.web.address)
        given = request.headers.get(CSRF_HEADER) or request.scope.get(FORM, {}).get("csrf", "")
        if not hmac.compare_digest(given.encode(), csrf.encode()):
            raise Refused(403, f"what changes something needs the header {CSRF_HEADER}: reload the page")

    def _read(self, find: Callable[[Connection], Found]) -> Found:
        with self.store.read() as connection:
            return find(connection)

    def _by_session(self, request: Request, secret: str) -> Person | None:
        session_hash = sha256_of(secret)
        session = self._sessions.get(
            session_hash,
            lambda: self._read(lambda connection: annotators.session_of(connection, session_hash, self.clock())),
        )
        if session is None or not self._is_still_good(session):
            return None
        csrf = csrf_of(secret)
        if request.method not in _SAFE:
            self._require_own_page(request, csrf)
        known, origin = session.annotator, self.origin(request)
        oidc = self.settings.web.oidc
        if session.groups is not None and oidc is not None:
            role, monitors = self._standing(oidc, session.name, session.groups)
            return Person(session.name, role, monitors, "session", csrf, origin)
        if known is None:
            self._require_this_machine(request)
            return Person(session.name, "operator", None, "session", csrf, origin)
        if not known.is_let_in(self.clock()):
            return None
        return Person(known.name, known.role, known.monitors, "session", csrf, origin)

    def _is_still_good(self, session: Session) -> bool:
        """Whether a session counts as what it was begun with: a name before the first token was given, a provider."""
        if session.groups is not None:
            return self.settings.web.oidc is not None
        return session.annotator is not None or not self.asks_for_tokens()

    def _require_this_machine(self, request: Request) -> None:
        """A refusal where another machine may have sent this, and a name says nothing of who asks."""
        web = self.settings.web
        if web.leads_elsewhere:
            raise Refused(
                403,
                f"these pages are reached from other machines, by {web.address} (web: url), so a name is not enough: "
                "give people tokens with opmon annotators add NAME",
            )
        require_this_machine(request, self._is_near(request))

    def _is_near(self, request: Request) -> bool:
        """Whether no other machine can have sent this."""
        return both_ends_are_here(request) if self.is_guest else self.settings.web.is_loopback

    def _how(self) -> str:
        if self._proxies is not None:
            return "say who you are: come through the proxy that knows you, or send Authorization: Bearer <token>"
        if self.asks_for_tokens():
            return "say who you are: send Authorization: Bearer <token>, or sign in at /sign-in"
        return f"say who you are: send the header {NAME_HEADER}: <your name>, or sign in at /sign-in"
