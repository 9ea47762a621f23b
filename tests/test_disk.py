from __future__ import annotations

import errno
from pathlib import Path

import pytest

from opmon import disk
from opmon.errors import NotFoundError, RegistryUnavailable, StateUnavailable
from opmon.registry.translation import translated

FULL = OSError(errno.ENOSPC, "No space left on device", "/var/opmon/a")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "takes no writes"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EACCES, "may not write there"),
        (errno.EIO, "gives errors"),
        (errno.ENOTDIR, "a file where a folder should be"),
    ],
)
def test_what_the_disk_says_is_told_in_words(code: int, words: str) -> None:
    told = disk.trouble(OSError(code, "…", "/var/opmon/a"), Path("/var/opmon"))
    assert isinstance(told, StateUnavailable)
    assert words in str(told)
    assert "/var/opmon/a" in str(told)


def test_what_is_of_another_folder_or_no_disk_is_something_else() -> None:
    assert disk.trouble(OSError(errno.EACCES, "…", "/data/a"), Path("/var/opmon")) is None
    assert disk.trouble(OSError(errno.ECONNREFUSED, "…")) is None
    assert disk.trouble(ValueError("full")) is None


def test_what_a_library_wraps_is_seen() -> None:
    wrapped = ValueError("cannot save")
    wrapped.__cause__ = FULL
    assert "the disk is full" in str(disk.trouble(wrapped))


@pytest.mark.parametrize(
    ("exc", "kind", "words"),
    [
        (FULL, StateUnavailable, "/var/opmon/a cannot be written: the disk is full"),
        (
            ValueError("while downloading one or more artifacts from x:\n[Errno 28] No space left on device"),
            StateUnavailable,
            "the disk of this machine is full",
        ),
        (
            ValueError('500 Server Error: x. Response text: {"message": "[Errno 28] No space left on device"}'),
            RegistryUnavailable,
            "the disk of MLflow at http://mlflow is full",
        ),
        (ValueError("(sqlite3.OperationalError) database or disk is full"), RegistryUnavailable, "disk of MLflow"),
        (FileNotFoundError(errno.ENOENT, "no such file", "a"), NotFoundError, "no such file"),
    ],
)
def test_whose_disk_is_full_is_told(exc: Exception, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words), translated("downloading", "http://mlflow"):
        raise exc
