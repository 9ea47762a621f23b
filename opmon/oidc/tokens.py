"""ID tokens: who signed one, and whether it is meant for opmon, for this sign-in and for now. Pure.

Only RS256 and ES256 are known: the first every provider must speak, the second the larger ones may be set to. Which one
is checked goes by the key, never by what the token says of itself alone: ``none`` and HMAC cannot pass.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opmon.oidc.untrusted import Untrusted
from opmon.types import Json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

SKEW_SECONDS = 60
"""How much the provider's clock may differ from this one."""
_LONGEST = 100_000
_FEWEST_BITS = 2048
_KINDS = {"RS256": ("RSA", None), "ES256": ("EC", "P-256")}
_ES256_BYTES = 64


@dataclass(frozen=True)
class Signed:
    """A token that came, taken apart; nothing of it is believed yet."""

    algorithm: str
    key_id: str | None
    claims: Mapping[str, Json]
    content: bytes
    signature: bytes


def parted(token: object) -> Signed:
    """The parts of a token."""
    if not isinstance(token, str) or len(token) > _LONGEST or token.count(".") != 2 or not token.isascii():
        raise Untrusted("the ID token is no signed token")
    content, _, signature = token.rpartition(".")
    head, _, body = content.partition(".")
    header, claims = _mapping(head), _mapping(body)
    if "crit" in header:
        raise Untrusted("the ID token asks for more than opmon knows (crit)")
    key_id = header.get("kid")
    return Signed(
        str(header.get("alg"))[:20],
        key_id if isinstance(key_id, str) else None,
        claims,
        content.encode(),
        _bytes(signature),
    )


def key_for(signed: Signed, keys: Sequence[Mapping[str, Json]]) -> Mapping[str, Json] | None:
    """The provider's key that may have signed a token; None where there is none, perhaps because it is new."""
    if signed.algorithm not in _KINDS:
        raise Untrusted(f"the ID token is signed with {signed.algorithm!r}; opmon takes {' and '.join(_KINDS)}")
    kind, curve = _KINDS[signed.algorithm]
    fitting = [
        key
        for key in keys
        if key.get("kty") == kind
        and (curve is None or key.get("crv") == curve)
        and key.get("use", "sig") == "sig"
        and key.get("alg", signed.algorithm) == signed.algorithm
        and (signed.key_id is None or key.get("kid") == signed.key_id)
    ]
    return fitting[0] if len(fitting) == 1 else None


def require_signature(signed: Signed, key: Mapping[str, Json]) -> None:
    """An error unless this key signed the token."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    public = _public(key)
    try:
        if isinstance(public, rsa.RSAPublicKey):
            public.verify(signed.signature, signed.content, padding.PKCS1v15(), hashes.SHA256())
            return
        if isinstance(public, ec.EllipticCurvePublicKey) and len(signed.signature) == _ES256_BYTES:
            half = _ES256_BYTES // 2
            r, s = int.from_bytes(signed.signature[:half]), int.from_bytes(signed.signature[half:])
            public.verify(encode_dss_signature(r, s), signed.content, ec.ECDSA(hashes.SHA256()))
            return
    except InvalidSignature:
        pass
    raise Untrusted("the ID token is not signed by the provider")


def require_claims(claims: Mapping[str, Json], issuer: str, client: str, nonce: str, now: float) -> None:
    """An error unless the token is the provider's, for opmon, of this sign-in, and good now."""
    if claims.get("iss") != issuer:
        raise Untrusted(f"the ID token is of another issuer than {issuer} (web: oidc: issuer)")
    given = claims.get("aud")
    audience = given if isinstance(given, list) else [given]
    if client not in audience or claims.get("azp", client) != client or (len(audience) > 1 and "azp" not in claims):
        raise Untrusted(f"the ID token is for somebody else than {client!r} (web: oidc: client_id)")
    told = claims.get("nonce")
    if not isinstance(told, str) or not hmac.compare_digest(told.encode(), nonce.encode()):
        raise Untrusted("the ID token belongs to another sign-in")
    if now - SKEW_SECONDS >= _moment(claims, "exp"):
        raise Untrusted("the ID token has run out; where that is said of new ones, this machine's clock is wrong")
    if max(_moment(claims, "iat"), _moment(claims, "nbf", 0.0)) > now + SKEW_SECONDS:
        raise Untrusted("the ID token is of the future: the clock of the provider or of this machine is wrong")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise Untrusted("the ID token names nobody (sub)")


def _moment(claims: Mapping[str, Json], name: str, missing: float | None = None) -> float:
    value = claims.get(name, missing)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise Untrusted(f"the ID token has no {name} that is a time")
    return float(value)


def _public(key: Mapping[str, Json]) -> PublicKeyTypes:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        if key.get("kty") == "RSA":
            numbers = rsa.RSAPublicNumbers(_number(key, "e"), _number(key, "n"))
            if numbers.n.bit_length() < _FEWEST_BITS:
                raise Untrusted(f"the provider's key has fewer than {_FEWEST_BITS} bits")
            return numbers.public_key()
        return ec.EllipticCurvePublicNumbers(_number(key, "x"), _number(key, "y"), ec.SECP256R1()).public_key()
    except ValueError as exc:
        raise Untrusted("the provider's key is none") from exc


def _number(key: Mapping[str, Json], name: str) -> int:
    value = key.get(name)
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise Untrusted(f"the provider's key has no {name}")
    return int.from_bytes(_bytes(value))


def _mapping(part: str) -> Mapping[str, Json]:
    try:
        found = json.loads(_bytes(part))
    except (ValueError, RecursionError) as exc:
        raise Untrusted("the ID token cannot be read") from exc
    if not isinstance(found, dict):
        raise Untrusted("the ID token cannot be read")
    return found


def _bytes(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as exc:
        raise Untrusted("the ID token cannot be read") from exc
