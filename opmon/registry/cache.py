"""The cache of model versions on this machine; versions not used lately are removed.

Several processes may share the folder. Whoever takes a version out of it marks it as used, under a shared lock on the
model's folder; whoever removes versions looks at the marks and moves them out of the way under an exclusive one. So a
version that a process has just been given is never taken from it, and one that is gone is downloaded again.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from opmon import locks

log = logging.getLogger(__name__)

UNUSED = timedelta(hours=1)
"""A version is only removed when nobody asked for it for so long: it may not be loaded yet."""
_ABANDONED = timedelta(days=1)
_FETCHING, _REMOVING = ".fetching-", ".removing-"


def folder_of(into: Path, name: str) -> Path:
    """Where the versions of a model are."""
    return into / quote(name, safe=" ")


def take(folder: Path, file: Path) -> bool:
    """Whether a version's folder has the file; it then counts as used."""
    with _locked(folder.parent, locks.SHARED):
        if not (folder / file).is_file():
            return False
        with suppress(OSError):  # a folder that only others may write to
            os.utime(folder)
        return True


def versions(into: Path, name: str) -> set[str]:
    """The versions of a model that are here."""
    try:
        return {path.name.partition("-")[0] for path in folder_of(into, name).iterdir() if path.name[0] != "."}
    except FileNotFoundError:
        return set()


def forget(into: Path, name: str, keep: Collection[str], unused: timedelta = UNUSED) -> list[str]:
    """Remove the versions of a model that are not to be kept and were not used lately; gives their names.

    What a killed process left of a download is removed too, after a day.
    """
    folder = folder_of(into, name)
    removed: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix=_REMOVING, dir=folder) as away, _locked(folder, locks.EXCLUSIVE):
            for path in sorted(folder.iterdir()):
                if path.name != Path(away).name and _may_go(path, keep, unused):
                    path.rename(Path(away) / path.name)
                    removed.append(path.name)
    except OSError as exc:
        log.warning("old versions of %s stay in %s: %s", name, folder, exc)
    if removed:
        log.info("removed versions of %s that nothing needs: %s", name, ", ".join(removed))
    return [name for name in removed if name[0] != "."]


def fetching(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder beside a version's own, to fill before it is moved there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=_FETCHING, dir=folder.parent)


def _may_go(path: Path, keep: Collection[str], unused: timedelta) -> bool:
    age = datetime.now(UTC) - datetime.fromtimestamp(path.stat().st_mtime, UTC)
    if path.name.startswith((_FETCHING, _REMOVING)):
        return age > _ABANDONED
    return path.is_dir() and path.name.partition("-")[0] not in keep and age > unused


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    """A lock on a folder, held for a moment; without one where the file system has none."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield  # it is not there: nothing in it can be taken or removed
        return
    try:
        with suppress(OSError):
            locks.lock(handle, how)
        yield
    finally:
        os.close(handle)
