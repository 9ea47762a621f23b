"""What this machine's disk says when it takes no more, in words."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from opmon.errors import StateUnavailable
from opmon.private import private_folder

_FULL = "the disk is full. Free some space"
_WORDS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: "the quota of its disk is used up. Free some space, or ask for more",
    errno.EFBIG: "files may not become so large there. Raise the limit (ulimit -f), or free some space",
    errno.EROFS: "the disk takes no writes. Mount it for writing, or name another folder in 'state'",
    errno.EMFILE: "this process has too many files open. Raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many files open. Close some, or raise its limit (fs.file-max)",
}
_NO_RIGHT = "opmon may not write there. Give its user the right, or name another folder in 'state'"
_IN_THE_WAY = "there is a file where a folder should be. Move it, or name another folder in 'state'"
_OURS = {
    errno.EACCES: _NO_RIGHT,
    errno.EPERM: _NO_RIGHT,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.EIO: "the disk gives errors. Check it, or name another folder in 'state'",
}
"""What is told of the folder for opmon's own files only: elsewhere it has other causes."""
_FOR_GOOD = (errno.EROFS, *_OURS)
"""What does not pass by itself, as a disk that is full may."""


def trouble(exc: BaseException, state: Path | None = None) -> StateUnavailable | None:
    """The error to raise for one that comes from a disk that takes no more; None where it is something else.

    ``state`` is the folder for opmon's own files. Libraries wrap what happened: the errors that led to this one count.
    """
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, OSError):
            file = Path(str(cause.filename)) if cause.filename is not None else None
            ours = state is not None and file is not None and file.absolute().is_relative_to(state.absolute())
            words = _WORDS.get(cause.errno or 0) or (_OURS.get(cause.errno or 0) if ours else None)
            if words is not None:
                return StateUnavailable(f"{file or state or 'a file'} cannot be written: {words}. Nothing is lost.")
        cause = cause.__cause__ or cause.__context__
    return None


def why(exc: OSError) -> str:
    """What a disk said of one of opmon's own files, in words that name no file."""
    return _WORDS.get(exc.errno or 0) or _OURS.get(exc.errno or 0) or "the disk takes no writes now"


def require_writes(state: Path) -> None:
    """Make the folder for opmon's own files where there is none; an error where files cannot be made in it.

    A disk that is full is none: that passes, and is told by whatever needs room.
    """
    try:
        private_folder(state)
        with tempfile.NamedTemporaryFile(prefix=".trial-", dir=state):
            pass
        below = [each for each in state.iterdir() if each.is_dir() and each.name != "lost+found"]
    except OSError as exc:
        if exc.errno in _FOR_GOOD:
            raise StateUnavailable(f"the folder {state} cannot be used: {why(exc)}.") from exc
        return
    for each in below:
        _require_rights(each)


def require_place(state: Path) -> None:
    """An error where the folder for opmon's own files, which may not be there yet, cannot be used; it is not made."""
    if os.path.isdir(state):  # noqa: PTH112 - a path that may not be looked at is none
        require_writes(state)
        return
    place = next(each for each in (state, *state.parents) if os.path.lexists(each))
    if not place.is_dir():
        raise StateUnavailable(f"the folder {state} cannot be used: {_IN_THE_WAY}.")
    _require_rights(place)


def _require_rights(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise StateUnavailable(f"the folder {folder} cannot be used: {_NO_RIGHT}.")
