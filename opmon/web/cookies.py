"""The cookie that keeps a browser signed in: scripts cannot read it, and other sites cannot make use of it."""

from __future__ import annotations

from fastapi import Request, Response

from opmon.web.identity import COOKIE
from opmon.web.root import under
from opmon.web.site import Site


def keep_signed_in(answer: Response, secret: str, seconds: int, secure: bool) -> None:
    """Give the browser its session."""
    answer.set_cookie(COOKIE, secret, max_age=seconds, httponly=True, samesite="strict", secure=secure, path=under("/"))


def over_https(site: Site, request: Request) -> bool:
    """Whether browsers reach these pages by HTTPS, so that their cookies are to go by nothing else."""
    return request.url.scheme == "https" or site.settings.web.address.startswith("https://")
