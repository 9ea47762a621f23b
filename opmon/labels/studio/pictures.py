"""The pictures in a payload, as addresses that a browser opens: URLs, or the picture itself as a data URI."""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from opmon.pixels import black_and_white, in_order
from opmon.types import Json

FEWEST = 64
"""A flat list of fewer numbers is no picture, square as it may be."""
_LARGEST = 32 * 1024 * 1024
_MOST_NUMBERS = 40_000_000
_ADDRESS = re.compile(r"(?:https?://\S+|data:image/\S+)\Z", re.IGNORECASE)
_NAMED = re.compile(r"https?://[^\s?#]+\.(?:png|jpe?g|gif|webp|bmp|svg|avif)(?:[?#]\S*)?\Z", re.IGNORECASE)
_KINDS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"), (b"BM", "bmp"))


def is_picture(value: Json, *, named: bool = False) -> bool:
    """Whether a value of a payload is a picture; where the monitor says so (``named``), a URL or numbers are enough."""
    if isinstance(value, str):
        return bool((_ADDRESS if named else _NAMED).match(value) or value.startswith("data:image/"))
    content = _bytes(value)
    if content is not None:
        return _kind(content) is not None
    return is_pixels(value) and (named or isinstance(value[0], list) or math.isqrt(len(value)) ** 2 == len(value))


def is_pixels(value: Json) -> TypeGuard[Sequence[Json]]:
    """Whether a value may be the pixels of a picture: rows of numbers, or very many numbers."""
    return isinstance(value, list) and bool(value) and (isinstance(value[0], list) or len(value) >= FEWEST)


def address_of(value: Json) -> str:
    """A picture as an address; empty where it is none that can be shown.

    >>> address_of("https://example.com/a.png"), address_of({"base64": "R0lGODlhAQABAAAAACw="})
    ('https://example.com/a.png', 'data:image/gif;base64,R0lGODlhAQABAAAAACw=')
    """
    if isinstance(value, str):
        return value if _ADDRESS.match(value) else ""
    content = _bytes(value)
    if content is None and is_pixels(value):
        content = _drawn(value)
    kind = None if content is None else _kind(content)
    if content is None or kind is None or len(content) > _LARGEST:
        return ""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def content_of(address: str) -> tuple[bytes, str] | None:
    """The picture in a data URI and the ending of its file's name; None for another address.

    >>> content_of("data:image/gif;base64,R0lGODlhAQABAAAAACw=")
    (b'GIF89a\\x01\\x00\\x01\\x00\\x00\\x00\\x00,', 'gif')
    """
    match = re.match(r"data:image/(\w+);base64,", address)
    return None if match is None else (base64.b64decode(address[match.end() :]), match[1])


def _bytes(value: Json) -> bytes | None:
    if not isinstance(value, dict) or set(value) != {"base64"} or not isinstance(value["base64"], str):
        return None
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, ValueError):
        return None


def _kind(content: bytes) -> str | None:
    """What kind of picture bytes are, of those that every browser shows."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for begin, kind in _KINDS if content.startswith(begin)), None)


def _drawn(value: Sequence[Json]) -> bytes | None:
    """Numbers as a PNG; None where they are no picture."""
    from PIL import Image

    try:
        pixels = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError):
        return None
    arranged = in_order(pixels)
    if arranged is None or not np.isfinite(arranged).all() or arranged.size > _MOST_NUMBERS:
        return None
    low, high = black_and_white(float(arranged.min()), float(arranged.max()))
    shades = np.clip((arranged - low) / (high - low) * 255, 0, 255).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(shades).save(stream, format="PNG")
    return stream.getvalue()
