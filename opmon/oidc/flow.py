"""One sign-in: what goes to the provider with the browser, and what must come back with it.

All that a sign-in needs is derived from one secret, which the browser keeps in a cookie that scripts cannot read: the
state, which shows that the browser that comes back is the one that was sent; the nonce, which the ID token must hold;
and the verifier, without which the provider gives nothing for the code (PKCE).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from opmon.oidc.provider import Provider
from opmon.oidc.tokens import parted, require_claims, require_signature
from opmon.oidc.untrusted import Untrusted
from opmon.types import Json

_LONGEST_CODE = 4000
_SECRET_LENGTH = 43
_MOST_GROUPS = 1000


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def state_of(secret: str) -> str:
    """What the browser must bring back."""
    return _derived(secret, "state")


@dataclass(frozen=True)
class Known:
    """Who signed in, as the provider knows them."""

    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Flow:
    """Signing in at a provider."""

    provider: Provider
    back: str
    """Where the provider sends browsers back to."""
    clock: Callable[[], float] = time.time

    def address(self, secret: str) -> str:
        """Where a browser signs in."""
        own = self.provider.settings
        where = self.provider.endpoint("authorization_endpoint")
        challenge = hashlib.sha256(_derived(secret, "verifier").encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": own.client_id,
            "redirect_uri": self.back,
            "scope": own.scopes,
            "state": state_of(secret),
            "nonce": _derived(secret, "nonce"),
            "code_challenge": _written(challenge),
            "code_challenge_method": "S256",
        }
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}"

    def require_begun(self, secret: str, given: Mapping[str, str]) -> None:
        """An error unless the browser that came back is the one that was sent; nobody else is asked."""
        begun = len(secret) >= _SECRET_LENGTH  # without a cookie, what follows from no secret is known to all
        if not begun or not hmac.compare_digest(given.get("state", "").encode(), state_of(secret).encode()):
            raise Untrusted("this sign-in was not begun in this browser, or is over: begin again")

    def known(self, secret: str, given: Mapping[str, str]) -> Known:
        """Who came back from the provider with these values in the address."""
        self.require_begun(secret, given)
        own = self.provider.settings
        if given.get("iss", own.issuer) != own.issuer:
            raise Untrusted("the answer is of another provider")
        if "error" in given:
            why = given["error"][:60]
            raise Untrusted(f"{own.shown} let nobody in" + (f": {why}" if why.replace("_", "").isalnum() else ""))
        code = given.get("code", "")
        if not 0 < len(code) <= _LONGEST_CODE:
            raise Untrusted(f"{own.shown} sent no code")
        signed = parted(self.provider.id_token(code, _derived(secret, "verifier"), self.back))
        require_signature(signed, self.provider.key(signed))
        require_claims(signed.claims, own.issuer, own.client_id, _derived(secret, "nonce"), self.clock())
        return Known(_name(signed.claims, own.name), _groups(signed.claims, own.groups))


def _name(claims: Mapping[str, Json], claim: str) -> str:
    value = _claim(claims, claim)
    if not isinstance(value, str) or not value.strip():
        there = ", ".join(sorted(claims))[:300]
        raise Untrusted(f"the ID token has no name in {claim!r} (web: oidc: name); it has: {there}")
    if claim == "email" and claims.get("email_verified", True) not in (True, "true"):
        raise Untrusted("the provider has not made sure of the email address, so it names nobody")
    return value


def _groups(claims: Mapping[str, Json], claim: str) -> tuple[str, ...]:
    """The groups that a claim holds: a list, or one; none where it is not there."""
    value = _claim(claims, claim)
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))[:_MOST_GROUPS]


def _claim(claims: Mapping[str, Json], name: str) -> Json:
    """A claim by its name, or else by the names of mappings on the way to it with dots between."""
    if name in claims:
        return claims[name]
    found: Json = dict(claims)
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _derived(secret: str, what: str) -> str:
    return _written(hmac.new(secret.encode("utf-8", "surrogateescape"), what.encode(), hashlib.sha256).digest())


def _written(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
