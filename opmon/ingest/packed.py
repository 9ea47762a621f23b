"""Bodies that come compressed, unpacked as far as they may be large: what unpacks to more is refused before that."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from opmon.ingest.refused import Refused

_WINDOW = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""How zlib is told which of them it is."""
_PIECE = 1 << 18
_MEMBERS = 64
"""So many gzip files, one behind the other, may be in one body."""


def unpacked(body: bytes, coding: str, most: int, take: Callable[[int], None]) -> bytes:
    """The body as it was before it was compressed; ``take`` is told of each piece before there is the next.

    >>> import gzip
    >>> unpacked(gzip.compress(b"{}"), "gzip", 100, print)
    2
    b'{}'
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return body
    if coding not in _WINDOW:
        raise Refused(415, f"content-encoding {coding[:40]!r} is not read; send it as gzip, deflate, or as it is")
    pieces: list[bytes] = []
    left, room = body, most
    for _ in range(_MEMBERS):
        unpacking = zlib.decompressobj(_WINDOW[coding])
        while not unpacking.eof:
            piece = _next(unpacking, left, coding)
            room -= len(piece)
            if room < 0:
                raise Refused(413, f"the body unpacks to more than {most:,} bytes (ingest: max_body)")
            take(len(piece))
            pieces.append(piece)
            left = unpacking.unconsumed_tail
        left = unpacking.unused_data
        if not left:
            return b"".join(pieces)
    raise Refused(400, f"the body is more than {_MEMBERS} compressed files one behind the other; send it as one")


def _next(unpacking: zlib._Decompress, packed: bytes, coding: str) -> bytes:
    try:
        piece = unpacking.decompress(packed, _PIECE)
    except zlib.error as exc:
        raise Refused(400, f"the body is not {coding}, as content-encoding says: {exc}") from exc
    if not (piece or unpacking.eof or unpacking.unconsumed_tail):
        raise Refused(400, f"the body is cut short: its {coding} does not end")
    return piece
