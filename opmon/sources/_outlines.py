"""What is remembered of the footers of Parquet files."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

Key: TypeAlias = tuple[str, int, str]
"""The name of a file, its size, and the checksum of its footer."""
KEPT_SECONDS = 300.0
"""An outline that nobody asks for is forgotten after so long, or after twice as long at most."""
_MOST = 50_000


@dataclass(frozen=True, slots=True)
class Outline:
    """What a footer tells: a look at many files asks for it several times, and it never changes."""

    schema: pa.Schema
    rows: int


class Outlines:
    """The outlines of files by their names, sizes and the checksums of their footers, while they are asked for: a
    process that lives for years meets new files each minute, and the old ones never again.

    Files that share their schema share its memory.
    """

    def __init__(self) -> None:
        self._new: dict[Key, Outline] = {}
        """Those that were asked for since a moment."""
        self._old: dict[Key, Outline] = {}
        """Those that were asked for in the time before it, and not since."""
        self._schemas: dict[pa.Schema, pa.Schema] = {}
        self._since = time.monotonic()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def find(self, key: Key) -> Outline | None:
        """The outline of a file; None where it is not known, or not any more."""
        with self._lock:
            now = time.monotonic()
            if now - self._since > KEPT_SECONDS or len(self._new) >= _MOST:
                fresh = now - self._since <= 2 * KEPT_SECONDS
                self._old, self._new, self._schemas = self._new if fresh else {}, {}, {}
                self._since = now
            known = self._new.get(key)
            if known is None and (known := self._old.pop(key, None)) is not None:
                self._keep(key, known)
            return known

    def put(self, key: Key, outline: Outline) -> Outline:
        """Remember the outline of a file, and give it back as it is remembered."""
        with self._lock:
            return self._keep(key, outline)

    def _keep(self, key: Key, outline: Outline) -> Outline:
        shared = self._schemas.setdefault(outline.schema, outline.schema)
        self._new[key] = outline if shared is outline.schema else Outline(shared, outline.rows)
        return self._new[key]
