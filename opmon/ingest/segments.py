"""The segments in which events are kept as they come: files of lines, numbered, in one folder that one process owns."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opmon.errors import LeaseHeld
from opmon.ingest.event import Kept, kind_of
from opmon.locks import try_lock
from opmon.private import FILE, private_folder

_NAME = re.compile(r"([0-9]{12})\.(log|read|keys)")
_SALT = 16
_MOST_FILES = 64
"""So many small files of digests; then half of them become one."""


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """A file of events; ``.log`` until rows were made of it, ``.read`` after that."""

    number: int
    path: Path

    def lines(self, kinds: str = "") -> Iterator[tuple[int, bytes]]:
        """Its whole lines, of these kinds or all, with where they begin."""
        at = 0
        with self.path.open("rb") as stream:
            for line in stream:
                if line.endswith(b"\n") and (not kinds or kind_of(line) in kinds):
                    yield at, line
                at += len(line)

    def event_at(self, place: int) -> Kept | None:
        with self.path.open("rb") as stream:
            stream.seek(place)
            return Kept.of_line(stream.readline())


@dataclass
class Segments:
    """The folder of segments, held by this process alone."""

    folder: Path
    salt: bytes = field(init=False, repr=False)
    _lock: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        private_folder(self.folder.parent)
        private_folder(self.folder)
        self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, FILE)
        if not try_lock(self._lock):
            owner = os.read(self._lock, 20).decode(errors="replace").strip()
            os.close(self._lock)
            raise LeaseHeld(
                f"process {owner or '?'} keeps what is sent in {self.folder} already: let that one do it, or end it "
                f"first. Two endpoints need two folders ('state')"
            )
        os.truncate(self._lock, 0)
        os.write(self._lock, f"{os.getpid()}\n".encode())
        self.salt = self._own_salt()
        for path in self.folder.glob("*.new"):
            path.unlink()
        for segment in self.unread():
            _mend(segment.path)

    def close(self) -> None:
        os.close(self._lock)

    @property
    def name(self) -> str:
        """What tells this folder from one that was made anew in its place."""
        return self.salt.hex()[:8]

    def unread(self) -> list[Segment]:
        """The segments of which no rows were made, oldest first; the last may be the one that is written."""
        return self._of("log")

    def read(self) -> list[Segment]:
        """The segments of which rows were made, as far as they are still there."""
        return self._of("read")

    def next_number(self) -> int:
        return 1 + max((number for number, _, _ in self._all()), default=0)

    def path_of(self, number: int, ending: str) -> Path:
        return self.folder / f"{number:012}.{ending}"

    def mark_read(self, segment: Segment) -> None:
        segment.path.rename(self.path_of(segment.number, "read"))
        sync(self.folder)

    def keep_keys(self, number: int, keys: NDArray[np.uint64], most: int) -> None:
        """Keep the digests of a segment's events longer than the segment: the newest ``most``, in few files."""
        write_whole(self.path_of(number, "keys"), keys.astype("<u8").tobytes())
        count = 0
        for segment in reversed(self._of("keys")):
            if count >= most:
                segment.path.unlink()
            else:
                count += segment.path.stat().st_size // 8
        small = [each.path for each in self._of("keys") if each.path.stat().st_size < most]  # an eighth of all
        if len(small) > _MOST_FILES:
            *older, last = small[: _MOST_FILES // 2]
            write_whole(last, b"".join(path.read_bytes() for path in [*older, last]))
            for path in older:
                path.unlink()

    def kept_keys(self) -> Iterator[tuple[Path, NDArray[np.uint64]]]:
        """The digests that are kept, newest segment first."""
        for segment in reversed(self._of("keys")):
            yield segment.path, np.frombuffer(segment.path.read_bytes(), "<u8").astype(np.uint64)

    def _of(self, ending: str) -> list[Segment]:
        return sorted(Segment(number, path) for number, path, kind in self._all() if kind == ending)

    def _all(self) -> Iterator[tuple[int, Path, str]]:
        for path in self.folder.iterdir():
            name = _NAME.fullmatch(path.name)
            if name is not None:
                yield int(name[1]), path, name[2]

    def _own_salt(self) -> bytes:
        path = self.folder / "salt"
        if not path.exists():
            write_whole(path, secrets.token_bytes(_SALT))
        return path.read_bytes()


def write_whole(path: Path, content: bytes) -> None:
    """Let there be a file with this content, whole at once, whatever happens."""
    new = path.with_name(f"{path.name}.new")
    handle = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, FILE)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        new.rename(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Let what was done to a file, or in a folder, outlive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mend(path: Path) -> None:
    """Cut off what was not written to its end: it was never acknowledged."""
    whole = at = 0
    with path.open("rb") as stream:
        for line in stream:
            at += len(line)
            if Kept.of_line(line) is not None:
                whole = at
    if whole < at:
        os.truncate(path, whole)
        sync(path)
