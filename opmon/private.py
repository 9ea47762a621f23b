"""Files that only the user who runs opmon may read: they hold production's inputs, labels, people's names."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TextIO

FILE, FOLDER = 0o600, 0o700


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
