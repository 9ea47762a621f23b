"""Files that only the user who runs opmon may read: they hold production's inputs, labels, people's names."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TextIO

FILE, FOLDER = 0o600, 0o700
_OTHERS = 0o077
_of_user = -1


def keep_private() -> None:
    """Let all files that this process makes be for its user alone, unless it says otherwise of one."""
    global _of_user
    if _of_user == -1:
        _of_user = os.umask(_OTHERS)


def umask_of_user() -> int:
    """What programs of the user's are started with, which may write for others; -1: as this process is."""
    return _of_user


def as_open_as_its_folder(path: Path) -> None:
    """Let those read and write a file who may its folder: somebody made that for others to work in."""
    path.chmod(path.parent.stat().st_mode & 0o666)


def close_to_others(path: Path) -> None:
    """Let nobody but the user and their group into a folder that is there, where it is the user's own."""
    with suppress(OSError):
        mode = path.stat().st_mode
        if mode & 0o007:
            path.chmod(mode & 0o7770)


def make_private(path: Path) -> None:
    """Make an empty file for this user alone, where there is none; one that is there stays as it is.

    It is not even opened: to close a file ends all locks of the process on it, and those on an SQLite file keep other
    processes from removing what was written and is not in the file yet.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE))


def new_private(path: Path) -> TextIO:
    """A new file of text for this user alone, open for writing, whose lines end as they are written."""
    opened = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE)
    return os.fdopen(opened, "w", encoding="utf-8", newline="")


def private_folder(path: Path) -> None:
    """Make a folder for this user alone, where there is none, below folders as they usually are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(FOLDER, exist_ok=True)
