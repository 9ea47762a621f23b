"""A small provider of OpenID Connect that speaks the real protocol on loopback, and lies where a test wants it to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode

import uvicorn
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from tests.security.attacked import free_port

CLIENT, SECRET = "opmon", "oidc-s3cret-P4rT9v/w+x"


def written(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def number(value: int, size: int | None = None) -> str:
    return written(value.to_bytes(size or (value.bit_length() + 7) // 8))


@dataclass
class Key:
    """A key with a name, RSA or EC."""

    name: str
    kind: str = "RS256"
    bits: int = 2048

    def __post_init__(self) -> None:
        self.rsa = rsa.generate_private_key(65537, self.bits) if self.kind == "RS256" else None
        self.ec = ec.generate_private_key(ec.SECP256R1()) if self.kind == "ES256" else None

    @property
    def public(self) -> dict[str, Any]:
        own = {"kid": self.name, "use": "sig", "alg": self.kind}
        if self.rsa is not None:
            numbers = self.rsa.public_key().public_numbers()
            return {**own, "kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
        assert self.ec is not None
        point = self.ec.public_key().public_numbers()
        return {**own, "kty": "EC", "crv": "P-256", "x": number(point.x, 32), "y": number(point.y, 32)}

    def signed(self, content: bytes) -> bytes:
        if self.rsa is not None:
            return self.rsa.sign(content, padding.PKCS1v15(), hashes.SHA256())
        assert self.ec is not None
        r, s = decode_dss_signature(self.ec.sign(content, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)

    def pem(self) -> bytes:
        assert self.rsa is not None
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.rsa.public_key().public_bytes(serialization.Encoding.PEM, form)


def token(key: Key, claims: Mapping[str, Any], **header: Any) -> str:
    """A token that this key signed."""
    head = {"alg": key.kind, "kid": key.name, "typ": "JWT", **header}
    content = f"{written(json.dumps(head).encode())}.{written(json.dumps(claims).encode())}"
    return f"{content}.{written(key.signed(content.encode()))}"


def unsigned(claims: Mapping[str, Any], algorithm: str = "none") -> str:
    return f"{written(json.dumps({'alg': algorithm}).encode())}.{written(json.dumps(claims).encode())}."


def by_hmac(key: Key, claims: Mapping[str, Any]) -> str:
    """Signed with HMAC, and with the public key, which everybody has, as its secret."""
    head = {"alg": "HS256", "kid": key.name}
    content = f"{written(json.dumps(head).encode())}.{written(json.dumps(claims).encode())}"
    return f"{content}.{written(hmac.new(key.pem(), content.encode(), hashlib.sha256).digest())}"


@dataclass
class Provider:
    """Whoever comes is signed in as ``person``; ``claims``, ``token`` and ``about`` are what a test makes of them."""

    port: int = field(default_factory=free_port)
    person: dict[str, Any] = field(default_factory=lambda: {"preferred_username": "ann", "groups": ["ops"]})
    key: Key = field(default_factory=lambda: Key("first"))
    about: dict[str, Any] = field(default_factory=dict)
    claims: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
    token: Callable[[Key, dict[str, Any]], Any] = token
    slow: float = 0.0
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/realm"

    def application(self) -> FastAPI:
        app = FastAPI()

        @app.middleware("http")
        async def noted(request: Request, answered: Callable[[Request], Any]) -> Any:
            import asyncio

            self.asked.append(request.url.path.removeprefix("/realm"))
            await asyncio.sleep(self.slow)
            return await answered(request)

        @app.get("/realm/.well-known/openid-configuration")
        def described() -> dict[str, Any]:
            places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            places["end_session_endpoint"] = "end"
            return {"issuer": self.issuer, **{k: f"{self.issuer}/{v}" for k, v in places.items()}, **self.about}

        @app.get("/realm/keys")
        def keys() -> dict[str, Any]:
            return {"keys": [self.key.public]}

        @app.get("/realm/authorize")
        def authorize(request: Request) -> Response:
            given = dict(request.query_params)
            code = secrets.token_urlsafe(16)
            self.codes[code] = given
            return RedirectResponse(
                f"{given['redirect_uri']}?{urlencode({'code': code, 'state': given['state']})}", 302
            )

        @app.post("/realm/token")
        async def exchange(request: Request) -> Response:
            form = {name: values[-1] for name, values in parse_qs((await request.body()).decode()).items()}
            return self.exchanged(form, request.headers.get("authorization", ""))

        return app

    def exchanged(self, form: Mapping[str, str], authorization: str) -> Response:
        pair = base64.b64decode(authorization.removeprefix("Basic ") + "==").decode().partition(":")
        if (unquote(pair[0]), unquote(pair[2])) != (CLIENT, SECRET):
            return JSONResponse({"error": "invalid_client"}, 401)
        begun = self.codes.pop(form.get("code", ""), None)
        if begun is None or begun["redirect_uri"] != form["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        challenge = written(hashlib.sha256(form["code_verifier"].encode()).digest())
        if begun["code_challenge"] != challenge or begun["code_challenge_method"] != "S256":
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 300, "nonce": begun["nonce"]}
        made = self.token(self.key, self.claims({**claims, **self.person}))
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": made})


@contextmanager
def running(provider: Provider) -> Iterator[Provider]:
    """The provider at work."""
    config = uvicorn.Config(
        provider.application(), port=provider.port, log_config=None, lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join(10)
