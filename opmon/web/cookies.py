"""The cookie that keeps a browser signed in: scripts cannot read it, and other sites cannot make use of it.

Browsers keep one cookie of a name for all ports of a host, and send those of every path above the page: so the name
tells under which host and port the pages were found, and of several that come along each is looked at.
"""

from __future__ import annotations

from fastapi import Request, Response

from opmon.config.web import WebSettings
from opmon.web.root import under
from opmon.web.secrets import sha256_of

COOKIE = "opmon_session"
"""What its name begins with; all of it where it is of an earlier version."""
_MOST = 8
"""So many are looked at."""


def keep_signed_in(answer: Response, request: Request, secret: str, seconds: int, secure: bool) -> None:
    """Give the browser its session, in the place of the one that it had."""
    _take_back(answer, COOKIE)
    own = {"max_age": seconds, "httponly": True, "samesite": "strict", "secure": secure, "path": under("/")}
    answer.set_cookie(_name(request), secret, **own)  # type: ignore[arg-type]


def forget(answer: Response, request: Request) -> None:
    """Take the session away from the browser."""
    for name in (COOKIE, _name(request)):
        _take_back(answer, name)


def sessions_in(request: Request) -> list[str]:
    """What may be the secret of the browser's session, the likeliest first: others are of other opmons on its host."""
    own, found = _name(request), list[tuple[str, str]]()
    for line in request.headers.getlist("cookie"):
        for part in line.split(";"):
            name, _, value = part.strip().partition("=")
            if value and (name == COOKIE or name.startswith(f"{COOKIE}_")):
                found.append((name, value))
    found.sort(key=lambda each: each[0] != own)
    return list(dict.fromkeys(value for _, value in found))[:_MOST]


def over_https(web: WebSettings, request: Request) -> bool:
    """Whether browsers reach these pages by HTTPS, so that their cookies are to go by nothing else."""
    return request.url.scheme == "https" or web.address.startswith("https://")


def _name(request: Request) -> str:
    return f"{COOKIE}_{sha256_of(request.headers.get('host', ''))[:8]}"


def _take_back(answer: Response, name: str) -> None:
    answer.delete_cookie(name, path=under("/"), httponly=True, samesite="strict")
