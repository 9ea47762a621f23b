"""Scripts and styles: read once, under an address that changes with them, so that browsers may keep them for ever."""

from __future__ import annotations

import functools
import hashlib
from importlib.resources import files

from opmon.web.root import under

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


@functools.cache
def assets() -> dict[str, tuple[bytes, str]]:
    """The content and media type of each file, by its name."""
    found = sorted(files("opmon.web").joinpath("static").iterdir(), key=lambda each: each.name)
    typed = [(each, _TYPES.get(f".{each.name.rpartition('.')[2]}")) for each in found]
    return {each.name: (each.read_bytes(), kind) for each, kind in typed if kind is not None}


@functools.cache
def version() -> str:
    """Another one as soon as any file is another."""
    digest = hashlib.sha256()
    for name, (content, _) in assets().items():
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()[:16]


def address_of(name: str) -> str:
    """Where a page finds a file."""
    if name not in assets():
        raise KeyError(name)
    return under(f"/static/{version()}/{name}")
