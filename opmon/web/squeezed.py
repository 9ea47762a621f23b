"""Pages and JSON go out compressed; pictures, which are compressed already, as they are.

What is compressed together with a secret can betray it to another site that makes a browser ask again and again: here
none can, because browsers send the session's cookie with requests of our own pages only.
"""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_LEAST = 1500
"""Fewer bytes fit into one packet anyway."""
_PICTURES = ("/pictures/", "/examples/")


class Squeezed:
    """Compresses answers for whoever says that they take it."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain, self._squeezed = app, GZipMiddleware(app, minimum_size=_LEAST, compresslevel=5)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        as_it_is = scope["type"] != "http" or any(each in scope["path"] for each in _PICTURES)
        await (self._plain if as_it_is else self._squeezed)(scope, receive, send)
