"""Compressed bodies: what they may unpack to, and what is refused of them."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from opmon.ingest.endpoint import Endpoint
from opmon.ingest.packed import unpacked
from opmon.ingest.refused import Refused

Ask = Callable[..., tuple[int, dict[str, object]]]
ROW = b'{"id": "a", "age": 3}'


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


BOMB = packed(b"\0" * (64 << 20))


def ignored(size: int) -> None:
    """The room for a piece is there."""


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", packed(ROW)),
        (" GZIP ", packed(ROW)),
        ("x-gzip", packed(ROW[:7]) + packed(ROW[7:])),
        ("deflate", zlib.compress(ROW)),
        ("identity", ROW),
        ("", ROW),
    ],
    ids=["gzip", "capitals", "in two", "deflate", "identity", "nothing said"],
)
def test_a_body_is_what_was_compressed(coding: str, body: bytes) -> None:
    assert unpacked(body, coding, len(ROW), ignored) == ROW


@pytest.mark.parametrize(
    ("coding", "body", "status", "words"),
    [
        ("br", ROW, 415, "gzip, deflate"),
        ("gzip, gzip", packed(packed(ROW)), 415, "gzip, deflate"),
        ("gzip", ROW, 400, "not gzip"),
        ("gzip", packed(ROW)[:-9], 400, "cut short"),
        ("gzip", b"", 400, "cut short"),
        ("gzip", packed(ROW) + b"more", 400, "not gzip"),
        ("gzip", packed(ROW + b" "), 413, "unpacks to more than 21 bytes"),
        ("gzip", packed(b"") * 10_000, 400, "one behind the other"),
        ("deflate", BOMB, 400, "not deflate"),
    ],
    ids=["other", "twice", "plain", "cut", "empty", "more", "large", "many", "mixed"],
)
def test_what_is_wrong_is_refused_in_words(coding: str, body: bytes, status: int, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        unpacked(body, coding, len(ROW), ignored)
    assert refused.value.status == status


def test_a_bomb_is_refused_before_it_takes_the_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match="unpacks to more"):
            unpacked(BOMB, "gzip", 1 << 20, ignored)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_the_endpoint_takes_compressed_rows_and_refuses_a_bomb(endpoint: Endpoint, ask: Ask) -> None:
    told = {"content-type": "application/json", "content-encoding": "gzip"}

    def post(body: bytes) -> tuple[int, dict[str, object]]:
        return ask(endpoint, "POST", "/v1/ingest/digits", body, told)

    assert post(packed(ROW)) == (200, {"kept": 1, "known": 0})
    assert post(packed(b" " * 100_001))[0] == 413
    assert post(BOMB[:90_000])[0] == 413
    assert post(ROW)[0] == 400
    assert endpoint.app._waiting == 0
