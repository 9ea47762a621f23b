"""Finding the files that production wrote: only whole, regular files inside one folder."""

from __future__ import annotations

import errno
import fnmatch
import io
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Protocol

from opmon.errors import SourceError

if TYPE_CHECKING:
    from opmon.sources._stored import StoredFile

UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".inprogress", ".swp", "~")
LONGEST_PART = 1000
_MAGIC = frozenset("*?[")
_NOTHING = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)
"""What is left alone: removed or renamed while we looked, or a link that leads nowhere."""

LeaveOut = Callable[[SourceError], None]
"""Hears of what cannot be read: raises it, or lets the other files go on."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that was found: ``part`` is its path below the root, with forward slashes."""

    part: str
    path: str | Path | StoredFile
    """Text where it was listed: a folder of a hundred thousand files is listed without taking paths apart."""
    size: int
    modified_ns: int
    content: bytes | None = field(default=None, repr=False)
    """All its bytes, where it is small: read once, so that all that is asked of the file has one answer."""

    def open(self) -> BinaryIO:
        """Its bytes."""
        if self.content is not None:
            return io.BytesIO(self.content)
        if isinstance(self.path, str | Path):
            return open(self.path, "rb", opener=_open_regular)
        return self.path.open("rb")


@dataclass(frozen=True, slots=True)
class Folder:
    """A root and which files below it are meant."""

    root: Path
    matches: Callable[[str], bool]

    def entry(self, part: str) -> Entry:
        """One file by its part; it must still be there, and inside the root."""
        pieces = part.split("/")
        if ".." in pieces or part.startswith("/"):
            raise SourceError(f"{part!r} is not a file below {self.root}")
        path = self.root / part
        try:
            found = path.lstat()
            folders = (self.root.joinpath(*pieces[:depth]) for depth in range(1, len(pieces)))
            if stat.S_ISLNK(found.st_mode) or any(folder.is_symlink() for folder in folders):
                _require_inside(self.root, path, part)
                found = path.stat()
        except FileNotFoundError as exc:
            raise SourceError(
                f"{part} is gone from {self.root}, and a round still needs its rows. Put it back until the round is "
                f"closed; files may be removed after that."
            ) from exc
        except OSError as exc:
            raise SourceError(f"{part} in {self.root} cannot be read: {exc.strerror or exc}") from exc
        return Entry(part, path, found.st_size, found.st_mtime_ns)

    def entries(self, leave_out: LeaveOut) -> list[Entry]:
        """All files there are, oldest first; names decide where times are the same."""
        found: dict[str, Entry] = {}
        links: list[tuple[str, Entry]] = []
        for item, part in _walk(self.root, str(self.root), "", leave_out):
            if not self.matches(part):
                continue
            try:
                entry = _entry_of(self.root, item, part)
                if entry is None:
                    continue
                if item.is_symlink():
                    links.append((_require_inside(self.root, self.root / part, part), entry))
                else:
                    found[item.path] = entry
            except SourceError as exc:
                leave_out(exc)
        for target, entry in links:  # a link to a file that is read anyway would count its rows twice
            found.setdefault(target, entry)
        return sorted(found.values(), key=lambda entry: (entry.modified_ns, entry.part))


class Place(Protocol):
    """Where files are found."""

    def entry(self, part: str) -> Entry:
        """One file by its part; it must still be there."""
        ...

    def entries(self, leave_out: LeaveOut) -> list[Entry]:
        """All files there are, oldest first."""
        ...


@dataclass(slots=True)
class ListedOnce:
    """A place whose files are listed the first time that they are asked for; what comes later is not among them."""

    place: Place
    listed_at: float = field(default_factory=time.time)
    """When: how long a file had been left alone by then says nothing of what is written to it afterwards."""
    _found: list[Entry] | None = None
    _problems: list[SourceError] = field(default_factory=list)

    def entry(self, part: str) -> Entry:
        """One file by its part, as it is now."""
        return self.place.entry(part)

    def entries(self, leave_out: LeaveOut) -> list[Entry]:
        """The files that there were."""
        if self._found is None:
            self._problems.clear()
            self._found = self.place.entries(self._problems.append)
        for problem in self._problems:
            leave_out(problem)
        return self._found


def magic_at(parts: Sequence[str]) -> int | None:
    """Which piece of a path is the first with a sign that stands for others; None where there is none."""
    return next((i for i, part in enumerate(parts) if _MAGIC & set(part)), None)


def open_folder(path: str, wanted: Callable[[str], bool]) -> Folder:
    """The folder of a file, a directory or a glob; ``wanted`` chooses among the files of a directory by their name."""
    parts = Path(path).expanduser().parts
    magic = magic_at(parts)
    plain = Path(*parts[:magic]) if magic else Path(path).expanduser()
    if magic == 0:
        plain = Path()
    try:
        root = plain.resolve(strict=True)
    except FileNotFoundError as exc:
        raise SourceError(
            f"there is no file or folder {str(plain)!r} (path: {path!r}); create it, or correct the path"
        ) from exc
    except (OSError, RuntimeError) as exc:  # a loop of links is a RuntimeError before Python 3.13
        raise SourceError(f"the folder {str(plain)!r} cannot be opened: {exc}") from exc
    if magic is not None:
        pattern = PurePosixPath(*parts[magic:])
        return Folder(root, lambda part: match_path(part, pattern.parts))
    if root.is_dir():
        return Folder(root, wanted)
    name = root.name
    return Folder(root.parent, lambda part: part == name)


def match_path(part: str, pattern: tuple[str, ...]) -> bool:
    """Whether a path fits a glob, piece by piece; ``**`` stands for any number of folders."""
    return _match(tuple(part.split("/")), pattern)


def _match(pieces: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not pieces
    if pattern[0] == "**":
        return any(_match(pieces[skip:], pattern[1:]) for skip in range(len(pieces) + 1))
    return bool(pieces) and fnmatch.fnmatchcase(pieces[0], pattern[0]) and _match(pieces[1:], pattern[1:])


def _walk(root: Path, folder: str, prefix: str, leave_out: LeaveOut) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Every file below a folder with its part, links included; what a link to a folder holds is found where it is."""
    try:
        with os.scandir(folder) as found:
            items = sorted(found, key=lambda item: item.name)
    except OSError as exc:
        if exc.errno not in _NOTHING:
            leave_out(SourceError(f"the folder {_shown(folder)} cannot be listed: {exc.strerror or exc}"))
        return
    for item in items:
        if item.name.startswith((".", "_")) or item.name.lower().endswith(UNFINISHED):
            continue
        if not item.is_symlink() and _is_folder(item):
            yield from _walk(root, item.path, f"{prefix}{item.name}/", leave_out)
        elif _is_folder(item):
            try:
                _require_inside(root, Path(item.path), prefix + item.name)
            except SourceError as exc:
                leave_out(exc)
        else:
            yield item, prefix + item.name


def _entry_of(root: Path, item: os.DirEntry[str], part: str) -> Entry | None:
    """The file that a folder lists; None where it is no regular file, or gone by now."""
    try:
        part.encode()
        status = item.stat()
    except UnicodeEncodeError as exc:
        raise SourceError(f"a file in {root} has a name that is not UTF-8: {part!r}; rename it") from exc
    except OSError as exc:
        if exc.errno in _NOTHING:
            return None
        raise SourceError(f"{part} in {root} cannot be read: {exc.strerror or exc}") from exc
    if not stat.S_ISREG(status.st_mode):
        return None
    if len(part) > LONGEST_PART:
        raise SourceError(f"{part[:80]}… in {root} has a path of {len(part)} characters; {LONGEST_PART} is the most")
    return Entry(part, item.path, status.st_size, status.st_mtime_ns)


def _open_regular(path: str, flags: int) -> int:
    """Open a file; what became a pipe or the like since it was listed would be waited for without end."""
    opened = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    raise OSError(errno.EINVAL, "it is no regular file any more", path)


def _is_folder(item: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link that leads to one."""
    try:
        return item.is_dir()
    except OSError:  # a loop of links leads nowhere
        return False


def _require_inside(root: Path, path: Path, part: str) -> str:
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as exc:  # a loop of links is a RuntimeError before Python 3.13
        raise SourceError(f"{_shown(part)} in {root} is a link that cannot be followed: {exc}") from exc
    if not target.is_relative_to(root):
        raise SourceError(
            f"{_shown(part)} in {root} is a link that leaves the folder (to {_shown(str(target))}); links must stay "
            f"inside. Copy the file, or give the folder it lives in as the source's path."
        )
    return str(target)


def _shown(path: str) -> str:
    """A path that can be printed: what is not UTF-8 in it as escapes."""
    return path.encode(errors="backslashreplace").decode()
