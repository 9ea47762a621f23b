"""The only writer of segments: what it has appended is on the disk before anybody is told."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from opmon.ingest.event import Digest, Event, Kept, Kind
from opmon.ingest.known import Known
from opmon.ingest.segments import Segment, Segments, sync
from opmon.private import FILE

LARGEST = 64 << 20


@dataclass(slots=True)
class _Open:
    """The segment that is written: how much of it is on the disk, and since when it has events."""

    segment: Segment
    handle: int
    size: int = 0
    since: float | None = None
    torn: bool = False
    """Whether something may stand behind ``size`` that was not acknowledged."""


@dataclass
class Journal:
    """Events in the order in which they came. One thread appends and closes segments; others may read them."""

    segments: Segments
    every: float
    """Seconds after its first event that a segment is closed."""
    known: Known = field(default_factory=Known)
    largest: int = LARGEST
    monotonic: Callable[[], float] = time.monotonic
    closed: dict[int, tuple[float, float]] = field(init=False, default_factory=dict)
    """When each segment got its first event, and was closed."""
    _open: _Open | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.digest = Digest(self.segments.salt)
        self._next = self.segments.next_number()
        self._remember()
        now = self.monotonic()
        self.closed = {each.number: (now, now) for each in [*self.segments.unread(), *self.segments.read()]}

    def append(self, batch: Sequence[tuple[str, Sequence[Event]]]) -> list[int]:
        """Keep the events of each stream, in one write; how many of each were new. All are on the disk, or none."""
        lines: list[bytes] = []
        keys = [[self._keys(stream, event) for event in events] for stream, events in batch]
        seen = self.known.among({key for pairs in keys for key, _ in pairs if key})
        fresh: set[int] = set()
        new = []
        for (stream, events), pairs in zip(batch, keys, strict=True):
            before = len(lines)
            for event, (key, of) in zip(events, pairs, strict=True):
                if key and (key in seen or key in fresh):
                    continue
                fresh.add(key)
                lines.append(event.line(stream, key, of))
            new.append(len(lines) - before)
        if lines:
            self._write(b"".join(lines))
            self.known.add(fresh - {0})
        return new

    def close_if_due(self) -> None:
        """Begin another segment where this one is large or old enough."""
        current = self._open
        if current is None or current.since is None:
            return
        if current.size >= self.largest or self.monotonic() - current.since >= self.every:
            self.close_segment()

    def close_segment(self) -> None:
        """Close the segment that is written; the next event begins another."""
        current = self._open
        if current is None:
            return
        if current.torn:
            self._cut(current)
        now = self.monotonic()
        self.closed[current.segment.number] = (now if current.since is None else current.since, now)
        self._open = None
        os.close(current.handle)
        self.known.seal()

    def open_since(self) -> float:
        """Since when the segment has events that is written now."""
        current = self._open
        return self.monotonic() if current is None or current.since is None else current.since

    def _keys(self, stream: str, event: Event) -> tuple[int, int]:
        if not event.name:
            return 0, 0
        of = self.digest(stream, Kind.REQUEST, event.name) if event.kind is Kind.RESPONSE else 0
        return self.digest(stream, event.kind, event.name), of

    def _write(self, content: bytes) -> None:
        current = self._open or self._begin()
        if current.torn:
            self._cut(current)
        current.torn = True
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(current.handle, view) :]
            os.fsync(current.handle)
        except OSError:
            self._cut(current)
            raise
        current.torn = False
        current.size += len(content)
        if current.since is None:
            current.since = self.monotonic()

    def _cut(self, current: _Open) -> None:
        """Take back what was written and is not known to be on the disk: until that succeeds nothing is written."""
        os.ftruncate(current.handle, current.size)
        os.fsync(current.handle)
        current.torn = False

    def _begin(self) -> _Open:
        path = self.segments.path_of(self._next, "log")
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, FILE)
        self._open = _Open(Segment(self._next, path), handle)
        self._next += 1
        sync(self.segments.folder)
        return self._open

    def _remember(self) -> None:
        """Know what was kept before this process began."""
        found = []
        count = 0
        for path, keys in self.segments.kept_keys():
            if count >= self.known.most:
                path.unlink()
                continue
            found.append(keys)
            count += len(keys)
        for keys in reversed(found):
            self.known.add_sealed(keys)
        for segment in self.segments.unread():
            kept = (Kept.of_line(line) for _, line in segment.lines())
            self.known.add_sealed(np.array([event.key for event in kept if event and event.key], np.uint64))
