"""What was sent, as it is kept: one line of a segment for each event."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_CHECK = 8


class Kind(StrEnum):
    """What an event holds."""

    REQUEST = "q"
    RESPONSE = "a"
    ROW = "r"


@dataclass(frozen=True, slots=True)
class Event:
    """A request to a model, the response to one, or a row with an input's columns."""

    kind: Kind
    name: str
    """What tells it from every other event of its kind; one that comes twice is kept once. Empty: nothing does."""
    id: str
    """The input's id."""
    at: str
    """When it happened, or came, as ISO 8601 in UTC."""
    body: str
    """JSON, or the text of a payload."""

    def line(self, stream: str, key: int, of: int) -> bytes:
        """The event as it is kept; ``key`` is the digest of its name, ``of`` of the request that it answers."""
        told = [stream, key, of, self.id, self.at, self.body]
        text = f"{self.kind} {json.dumps(told, ensure_ascii=False, separators=(',', ':'))}".encode()
        return b"%08x %s\n" % (zlib.crc32(text), text)


@dataclass(frozen=True, slots=True)
class Kept:
    """An event as it is read again."""

    kind: Kind
    stream: str
    key: int
    of: int
    id: str
    at: str
    body: str

    @classmethod
    def of_line(cls, line: bytes) -> Self | None:
        """The event in a line; None where the line is damaged, or was not written to its end."""
        text = line[_CHECK + 1 : -1]
        if not line.endswith(b"\n") or line[:_CHECK] != b"%08x" % zlib.crc32(text):
            return None
        return cls(Kind(chr(text[0])), *json.loads(text[2:]))


def kind_of(line: bytes) -> str:
    """The kind of the event in a line, without reading it."""
    return chr(line[_CHECK + 1]) if len(line) > _CHECK + 1 else ""


@dataclass(frozen=True, slots=True)
class Digest:
    """Makes numbers of 64 bits of names, which nobody outside can foresee."""

    salt: bytes

    def __call__(self, stream: str, kind: Kind, name: str) -> int:
        told = f"{stream}\0{kind}\0{name}".encode()
        return int.from_bytes(hashlib.blake2b(told, digest_size=8, key=self.salt).digest(), "big")
