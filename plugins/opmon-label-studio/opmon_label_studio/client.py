"""Label Studio's HTTP API: every call ends within its deadline, and no error holds the token."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping, Sequence
from urllib.parse import SplitResult, urlencode, urlsplit

import httpcore

from opmon.errors import InputError, NotFoundError, UnavailableError
from opmon.redaction import redacted, without_password
from opmon.triggers.guard import Guard, GuardedBackend
from opmon.types import Json

LONGEST_ANSWER = 256 * 1024 * 1024
_TOLD = 300
_ACCESS = 120.0
"""For how many seconds an access token is used; Label Studio's live for five minutes."""
_ANOTHER = (
    "make one in Label Studio (Account & Settings, Personal Access Token) and put it where labels.provider.token "
    "points to; a legacy token works only while the organization allows them"
)


def address(url: str) -> SplitResult:
    """The address of a server in its parts."""
    parts = urlsplit(url.strip().rstrip("/"))
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query or parts.fragment:
        raise InputError(f"url must be Label Studio's address, such as http://127.0.0.1:8080; got {redacted(url)!r}")
    if parts.username is not None:
        raise InputError("url must not hold a user or password: Label Studio takes a token, in 'token'")
    return parts


class ForbiddenError(UnavailableError):
    """The token is good, and its user may not do or see this."""


class Client:
    """Calls to one server. A personal access token is exchanged for short-lived ones as they are needed."""

    def __init__(self, url: str, token: str, seconds: float) -> None:
        self._parts = address(url)
        self._token = token
        self._seconds = seconds
        self._access: tuple[str, float] | None = None
        self.shown = f"Label Studio at {without_password(self._parts.geturl())}"

    @property
    def base(self) -> str:
        """What stands before every path of the server; empty where it has a host to itself."""
        return self._parts.path

    def get(self, path: str, **query: object) -> Json:
        return self._json("GET", path, query)

    def post(self, path: str, body: Json, **query: object) -> Json:
        return self._json("POST", path, query, _encoded(body))

    def patch(self, path: str, body: Json) -> Json:
        return self._json("PATCH", path, {}, _encoded(body))

    def delete(self, path: str) -> None:
        self._json("DELETE", path, {})

    def upload(self, path: str, files: Sequence[tuple[str, bytes]], **query: object) -> Json:
        """Post files by their names, as a browser does."""
        border = "opmon-7d1f0c6e5b2a4938"
        parts = [
            f'--{border}\r\nContent-Disposition: form-data; name="file{number}"; filename="{name}"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\n".encode()
            + content
            + b"\r\n"
            for number, (name, content) in enumerate(files)
        ]
        body = b"".join([*parts, f"--{border}--\r\n".encode()])
        return self._json("POST", path, query, (body, f"multipart/form-data; boundary={border}"))

    def _json(self, method: str, path: str, query: Mapping[str, object], body: tuple[bytes, str] | None = None) -> Json:
        status, content = self._answer(method, path, query, body, self._authorization())
        self._judge(status, content)
        return self._read(content) if content.strip() else None

    def _authorization(self) -> str:
        if self._token.count(".") != 2:
            return f"Token {self._token}"
        if self._access is None or time.monotonic() > self._access[1]:
            status, content = self._answer("POST", "/api/token/refresh/", {}, _encoded({"refresh": self._token}), None)
            self._judge(status, content)
            answer = self._read(content)
            access = answer.get("access") if isinstance(answer, dict) else None
            if not isinstance(access, str):
                raise UnavailableError(f"{self.shown} gave no access token for the personal access token; {_ANOTHER}")
            self._access = access, time.monotonic() + _ACCESS
        return f"Bearer {self._access[0]}"

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, object],
        body: tuple[bytes, str] | None,
        authorization: str | None,
    ) -> tuple[int, bytes]:
        """The status and the body of the answer, all of it within the deadline."""
        host, secure = self._parts.hostname or "", self._parts.scheme == "https"
        port = self._parts.port or (443 if secure else 80)
        content, kind = body or (b"", "application/json")
        headers = {"Host": self._parts.netloc, "User-Agent": "opmon", "Accept": "application/json"}
        headers |= {"Content-Type": kind, "Content-Length": str(len(content)), "Connection": "close"}
        if authorization is not None:
            headers["Authorization"] = authorization
        target = f"{self._parts.path}{path}" + (f"?{urlencode(query)}" if query else "")
        url = httpcore.URL(scheme=self._parts.scheme, host=host, port=port, target=target)
        backend = GuardedBackend(Guard((host,)), time.monotonic() + self._seconds)
        context = ssl.create_default_context() if secure else None
        try:
            with (
                httpcore.ConnectionPool(network_backend=backend, ssl_context=context) as pool,
                pool.stream(method, url, headers=list(headers.items()), content=content) as response,
            ):
                return response.status, self._bounded(response)
        except (httpcore.TimeoutException, TimeoutError) as exc:
            raise UnavailableError(
                f"{self.shown} did not answer within {self._seconds:g} s; nothing is lost, and it is asked again. "
                "Is it overloaded?"
            ) from exc
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as exc:
            raise UnavailableError(
                f"{self.shown} cannot be reached ({exc or type(exc).__name__}); nothing is lost, and it is asked "
                "again. Is it running, and is url right?"
            ) from exc

    def _bounded(self, response: httpcore.Response) -> bytes:
        read = bytearray()
        for chunk in response.iter_stream():
            read += chunk
            if len(read) > LONGEST_ANSWER:
                raise UnavailableError(f"{self.shown} answered with more than {LONGEST_ANSWER:,} bytes")
        return bytes(read)

    def _judge(self, status: int, content: bytes) -> None:
        if 200 <= status < 300:
            return
        if status in (401, 403):
            refused = UnavailableError if status == 401 else ForbiddenError
            raise refused(f"{self.shown} does not take the token ({status}{self._detail(content)}); {_ANOTHER}")
        if status == 404:
            raise NotFoundError(f"{self.shown} has not what was asked for (404{self._detail(content)})")
        if 300 <= status < 400:
            raise UnavailableError(f"{self.shown} answered {status}, a redirect; put the final address into url")
        if status == 429 or status >= 500:
            raise UnavailableError(f"{self.shown} answered {status}{self._detail(content)}; it is asked again later")
        raise InputError(f"{self.shown} refused what it was sent ({status}{self._detail(content)})")

    def _detail(self, content: bytes) -> str:
        """What the server says is wrong, in a few words and without secrets."""
        try:
            told = json.loads(content)
        except (ValueError, RecursionError):
            return ""
        said = told.get("validation_errors") or told.get("detail") if isinstance(told, dict) else told
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        return f": {redacted(text.replace(self._token, '***'))[:_TOLD]}" if text else ""

    def _read(self, content: bytes) -> Json:
        try:
            found: Json = json.loads(content)
        except (ValueError, RecursionError) as exc:
            raise UnavailableError(f"{self.shown} answered something that is no JSON; is url right?") from exc
        return found


def _encoded(body: Json) -> tuple[bytes, str]:
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode(), "application/json"
