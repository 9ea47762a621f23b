"""Finding the files that production wrote: only whole, regular files inside one folder."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from opmon.errors import SourceError

UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".inprogress", ".swp", "~")
_MAGIC = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that was found: ``part`` is its path below the root, with forward slashes."""

    part: str
    path: Path
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A root and which files below it are meant."""

    root: Path
    matches: Callable[[str], bool]

    def entry(self, part: str) -> Entry:
        """One file by its part; it must still be there, and inside the root."""
        path = self.root / PurePosixPath(part)
        if ".." in PurePosixPath(part).parts or PurePosixPath(part).is_absolute():
            raise SourceError(f"{part!r} is not a file below {self.root}")
        try:
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

    def entries(self) -> list[Entry]:
        """All files there are, oldest first; names decide where times are the same."""
        found: dict[Path, Entry] = {}
        links: list[tuple[Path, Entry]] = []
        for item, part in _walk(self.root, self.root, ""):
            if not self.matches(part):
                continue
            try:
                part.encode()
                status = item.stat()
            except UnicodeEncodeError as exc:
                raise SourceError(f"a file in {self.root} has a name that is not UTF-8: {part!r}; rename it") from exc
            except FileNotFoundError:
                continue  # removed, or renamed, while we looked
            except OSError as exc:
                raise SourceError(f"{part} in {self.root} cannot be read: {exc.strerror or exc}") from exc
            if not stat.S_ISREG(status.st_mode):
                continue
            path = Path(item.path)
            entry = Entry(part, path, status.st_size, status.st_mtime_ns)
            if item.is_symlink():
                links.append((_require_inside(self.root, path, part), entry))
            else:
                found[path] = entry
        for target, entry in links:  # a link to a file that is read anyway would count its rows twice
            found.setdefault(target, entry)
        return sorted(found.values(), key=lambda entry: (entry.modified_ns, entry.part))


def open_folder(path: str, wanted: Callable[[str], bool]) -> Folder:
    """The folder of a file, a directory or a glob; ``wanted`` chooses among the files of a directory by their name."""
    parts = Path(path).expanduser().parts
    magic = next((i for i, part in enumerate(parts) if _MAGIC & set(part)), None)
    plain = Path(*parts[:magic]) if magic else Path(path).expanduser()
    if magic == 0:
        plain = Path()
    if not plain.exists():
        raise SourceError(f"there is no file or folder {str(plain)!r} (path: {path!r}); create it, or correct the path")
    root = plain.resolve()
    if magic is not None:
        pattern = PurePosixPath(*parts[magic:])
        return Folder(root, lambda part: match_path(part, pattern.parts))
    if root.is_dir():
        return Folder(root, wanted)
    name = root.name
    return Folder(root.parent, lambda part: part == name)


def match_path(part: str, pattern: tuple[str, ...]) -> bool:
    """Whether a path fits a glob, piece by piece; ``**`` stands for any number of folders."""
    return _match(PurePosixPath(part).parts, pattern)


def _match(pieces: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not pieces
    if pattern[0] == "**":
        return any(_match(pieces[skip:], pattern[1:]) for skip in range(len(pieces) + 1))
    return bool(pieces) and fnmatch.fnmatchcase(pieces[0], pattern[0]) and _match(pieces[1:], pattern[1:])


def _walk(root: Path, folder: Path, prefix: str) -> Iterator[tuple[os.DirEntry[str], str]]:
    try:
        with os.scandir(folder) as found:
            items = sorted(found, key=lambda item: item.name)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise SourceError(f"the folder {folder} cannot be listed: {exc.strerror or exc}") from exc
    for item in items:
        if item.name.startswith((".", "_")) or item.name.lower().endswith(UNFINISHED):
            continue
        if item.is_dir(follow_symlinks=False):
            yield from _walk(root, Path(item.path), f"{prefix}{item.name}/")
        elif item.is_symlink() and item.is_dir():
            _require_inside(root, Path(item.path), prefix + item.name)  # its files are found where they are
        else:
            yield item, prefix + item.name


def _require_inside(root: Path, path: Path, part: str) -> Path:
    target = path.resolve()
    if not target.is_relative_to(root):
        raise SourceError(
            f"{part} in {root} is a link that leaves the folder (to {target}); links must stay inside. Copy the file, "
            f"or give the folder it lives in as the source's path."
        )
    return target
