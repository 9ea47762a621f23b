"""Files in an object store: found by listing what lies below a URL, read by ranges, many side by side."""

from __future__ import annotations

import errno
import functools
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Self

from opmon.errors import OpmonError, SourceError
from opmon.sources._folder import LONGEST_PART, UNFINISHED, Entry, LeaveOut, Place, magic_at, match_path, open_folder
from opmon.stores import SCHEMES, no_answer, open_filesystem, refusal, scheme_of, store_url

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo

_BUFFER = 1 << 20
SMALL_BYTES, TAIL_BYTES = 1 << 20, 1 << 18
"""An object of so many bytes is fetched whole at once; of a larger one the end is."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One object, by the URL of its folder and its path below it."""

    url: str
    part: str
    size: int
    tail: bytes = b""
    """Its last bytes, where they were fetched already: the footer of a Parquet file is there."""

    def open(self, mode: str = "rb") -> BinaryIO:
        """Its bytes, fetched as they are read."""
        return io.BufferedReader(_Ranges(self), _BUFFER)

    def begun(self) -> bytes | Self:
        """All its bytes, where it is small, else the object with its end: what any look at it needs, in one request."""
        if self.size <= SMALL_BYTES:
            return self._range(0, self.size)
        return replace(self, tail=self._range(self.size - TAIL_BYTES, TAIL_BYTES))

    def _range(self, start: int, size: int) -> bytes:
        """Some of its bytes."""
        filesystem, folder = open_filesystem(self.url)
        try:
            with filesystem.open_input_file(f"{folder}/{self.part}") as stream:
                return bytes(stream.read_at(size, start))
        except OSError as exc:
            raise _told(self.url, exc, self.part) from exc


class _Ranges(io.RawIOBase):
    """Reads an object range by range; a store that fails is the system's error, never a damaged file's."""

    def __init__(self, file: StoredFile) -> None:
        self._file, self._at = file, 0

    @functools.cached_property
    def _stream(self) -> NativeFile:
        filesystem, folder = open_filesystem(self._file.url)
        return filesystem.open_input_file(f"{folder}/{self._file.part}")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        file = self._file
        wanted = min(len(buffer), file.size - self._at)
        if wanted <= 0:
            return 0
        kept_from = file.size - len(file.tail)
        if self._at >= kept_from:
            found = file.tail[self._at - kept_from :][:wanted]
        else:
            try:
                found = self._stream.read_at(wanted, self._at)
            except OSError as exc:
                raise OSError(errno.EIO, str(_told(file.url, exc, file.part))) from exc
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)

    def close(self) -> None:
        if not self.closed and "_stream" in vars(self):
            self._stream.close()
        super().close()


@dataclass(frozen=True)
class StoredFolder:
    """What lies below a URL, and which of its objects are meant."""

    url: str
    matches: Callable[[str], bool]

    def entry(self, part: str) -> Entry:
        """One object by its part; it must still be there."""
        if ".." in part.split("/") or part.startswith("/"):
            raise SourceError(f"{part!r} is not an object below {self.url}")
        filesystem, folder = open_filesystem(self.url)
        try:
            found = filesystem.get_file_info([f"{folder}/{part}"])[0]
        except OSError as exc:
            raise _told(self.url, exc, part) from exc
        if not found.is_file:
            raise SourceError(
                f"{part} is gone from {self.url}, and a round still needs its rows. Put it back until the round is "
                f"closed; files may be removed after that."
            )
        return self._entry(part, found)

    def entries(self, leave_out: LeaveOut) -> list[Entry]:
        """All objects there are, oldest first; names decide where times are the same."""
        from pyarrow.fs import FileSelector

        filesystem, folder = open_filesystem(self.url)
        try:
            listed = filesystem.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
            container = folder.partition("/")[0]
            if not listed and container and not filesystem.get_file_info([container])[0].type:
                raise FileNotFoundError
        except OSError as exc:
            raise _told(self.url, exc) from exc
        entries = []
        for found in listed:
            part = found.path[len(folder) + 1 :]
            if not found.is_file or not _is_whole(part) or not self.matches(part):
                continue
            if ".." in part.split("/"):
                leave_out(SourceError(f"{part!r} in {self.url} is no path that can be read again; give it another key"))
                continue
            if len(part) > LONGEST_PART:
                leave_out(SourceError(f"{part[:80]}… has a path of {len(part)} characters; {LONGEST_PART} is the most"))
                continue
            entries.append(self._entry(part, found))
        return sorted(entries, key=lambda entry: (entry.modified_ns, entry.part))

    def _entry(self, part: str, found: FileInfo) -> Entry:
        size = int(found.size)
        return Entry(part, StoredFile(self.url, part, size), size, int(found.mtime_ns))


def open_place(path: str, wanted: Callable[[str], bool]) -> Place:
    """The files of a folder, a glob or one by its name, on this machine or in an object store."""
    return _open_stored(store_url(path), wanted) if scheme_of(path) in SCHEMES else open_folder(path, wanted)


def _open_stored(url: str, wanted: Callable[[str], bool]) -> StoredFolder:
    """The folder of a URL or a glob; ``wanted`` chooses among its objects by their path."""
    scheme, _, rest = url.partition("://")
    pieces = rest.rstrip("/").split("/")
    magic = magic_at(pieces)
    if magic is not None:
        pattern = PurePosixPath(*pieces[magic:]).parts
        return StoredFolder(f"{scheme}://{'/'.join(pieces[:magic])}", lambda part: match_path(part, pattern))
    if len(pieces) > 1 and wanted(pieces[-1]):  # one object by its name
        name = pieces[-1]
        return StoredFolder(f"{scheme}://{'/'.join(pieces[:-1])}", lambda part: part == name)
    return StoredFolder(f"{scheme}://{'/'.join(pieces)}", wanted)


def _is_whole(part: str) -> bool:
    """Whether an object is one that somebody finished, by the names on its way."""
    pieces = part.split("/")
    return not any(piece.startswith((".", "_")) for piece in pieces) and not part.lower().endswith(UNFINISHED)


def _told(url: str, exc: OSError, part: str = "") -> OpmonError:
    """What a store's error means: that nothing is there, that one may not read it, or that it does not answer now."""
    why = refusal(exc)
    if why is None:
        return no_answer(url, exc)
    return SourceError(f"{part} in {url} is an object that {why}" if part else f"{url} is a folder that {why}")
