"""What this machine's disk says when it takes no more, in words."""

from __future__ import annotations

import errno
from pathlib import Path

from opmon.errors import StateUnavailable

_FULL = "the disk is full. Free some space"
_WORDS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: "the quota of its disk is used up. Free some space, or ask for more",
    errno.EROFS: "the disk takes no writes. Mount it for writing, or name another folder in 'state'",
    errno.EMFILE: "this process has too many files open. Raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many files open. Close some, or raise its limit (fs.file-max)",
}
_OURS = {
    errno.EACCES: "opmon may not write there. Give its user the right, or name another folder in 'state'",
    errno.EPERM: "opmon may not write there. Give its user the right, or name another folder in 'state'",
    errno.ENOTDIR: "there is a file where a folder should be. Move it, or name another folder in 'state'",
    errno.EEXIST: "there is a file where a folder should be. Move it, or name another folder in 'state'",
    errno.EIO: "the disk gives errors. Check it, or name another folder in 'state'",
}
"""What is told of the folder for opmon's own files only: elsewhere it has other causes."""


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
