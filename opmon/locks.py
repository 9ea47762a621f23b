"""Locks on files, which Linux and macOS have; on Windows an error that says so."""

from __future__ import annotations

from opmon.errors import ConfigError

try:
    import fcntl
except ImportError as exc:
    raise ConfigError(
        "opmon runs on Linux and macOS; Windows has no such locks on files: use WSL (wsl --install) or a container. "
        "Its samplers and estimators (opmon.samplers, opmon.estimators) work everywhere"
    ) from exc

SHARED, EXCLUSIVE = fcntl.LOCK_SH, fcntl.LOCK_EX


def lock(handle: int, how: int) -> None:
    """Wait for a lock on an open file; closing it gives the lock back."""
    fcntl.flock(handle, how)


def try_lock(handle: int) -> bool:
    """Take an exclusive lock on an open file where nobody has one; whether it was taken."""
    try:
        fcntl.flock(handle, EXCLUSIVE | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
