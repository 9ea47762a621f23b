"""Where reading of a file stopped, and how to tell that the file is still the one that was read."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from opmon.errors import SourceError

_TEXT = re.compile(r"(\d+)/(\d+|\?)@(\d+)-(-?\d+)#([0-9a-f]{8})")
BEGIN = "0"


@dataclass(frozen=True, slots=True)
class Position:
    """``at`` rows or bytes are read of ``whole`` (None: unknown); ``size``, ``modified_ns``, ``check`` know the file.

    ``check`` is a checksum of bytes that must not change: around ``at`` in a text file, the footer of a Parquet file.
    """

    at: int = 0
    whole: int | None = None
    size: int = 0
    modified_ns: int = 0
    check: str = "00000000"

    @property
    def started(self) -> bool:
        return self.at > 0

    def finished_with(self, size: int, modified_ns: int) -> bool:
        """Whether a file of this size and time has nothing that is not read: it need not even be opened."""
        return self.at == self.whole and (self.size, self.modified_ns) == (size, modified_ns)

    def __str__(self) -> str:
        whole = "?" if self.whole is None else self.whole
        return f"{self.at}/{whole}@{self.size}-{self.modified_ns}#{self.check}"


def parse(text: str | None, part: str) -> Position:
    """The position that ``str(position)`` wrote; none or ``"0"`` is the beginning."""
    if text is None or text == BEGIN:
        return Position()
    found = _TEXT.fullmatch(text)
    if found is None:
        raise SourceError(
            f"the position {text!r} of {part} was not written by the source 'files': it reads like "
            f"'100/250@4096-1700000000000000000#0a1b2c3d'. Was the monitor's source changed? Give it a new name."
        )
    at, whole, size, modified_ns, check = found.groups()
    return Position(int(at), None if whole == "?" else int(whole), int(size), int(modified_ns), check)


def checksum(*pieces: bytes) -> str:
    value = 0
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return f"{value:08x}"
