"""What a request tells of where it was sent from: another site's page, another machine."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from fastapi import Request

from opmon.config.listening import is_loopback
from opmon.web.refused import Refused

_OF_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
"""Headers by which a proxy says that it is one."""


def require_same_site(request: Request, address: str) -> None:
    """A refusal where another site made the browser send this; ``address`` is where browsers find these pages."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    own = {request.headers.get("host"), urlsplit(address).netloc}
    if site not in ("same-origin", "none") or (origin and origin.partition("://")[2] not in own):
        raise Refused(403, "this was sent by a page of another site")


def require_this_machine(request: Request, is_near: bool) -> None:
    """A refusal unless this machine sent it, under a name of its own and through no proxy."""
    host = re.sub(r":\d*$", "", request.headers.get("host", "")).strip("[]")
    proxied = any(name in request.headers for name in _OF_PROXIES)
    if not is_near or host not in ("localhost", "127.0.0.1", "::1") or proxied:
        raise Refused(
            403,
            "without tokens only this machine may ask, at http://127.0.0.1 or http://localhost and through no "
            "proxy: give people tokens with opmon annotators add NAME",
        )


def both_ends_are_here(request: Request) -> bool:
    """Whether the connection begins and ends on this machine."""
    ends = (request.scope.get("server"), request.scope.get("client"))
    return all(end is not None and is_loopback(end[0]) for end in ends)


def meant(text: str) -> str:
    """A header as its sender meant it: they are read as Latin-1, and written as UTF-8."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
