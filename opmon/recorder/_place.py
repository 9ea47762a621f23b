"""Where files are put: a folder of this machine, or an object store. A file is there whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from opmon.errors import InputError
from opmon.stores import open_filesystem

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_URL = re.compile(r"^([a-z][a-z0-9+.-]+)://")
_LEFT_SECONDS = 86_400.0


class Place(Protocol):
    """Takes files by names below it; the same name again is the same file."""

    def put(self, name: str, data: Any) -> None: ...


class Folder:
    """A folder of this machine: written under a name that no source reads, made durable, and renamed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tidied = False

    def put(self, name: str, data: Any) -> None:
        target = self._path / name
        if not target.parent.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
        if not self._tidied:
            self._tidied = True
            self._tidy()
        part = target.with_name(f".{target.name}.tmp")
        try:
            with part.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            part.rename(target)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
        _sync(target.parent)

    def _tidy(self) -> None:
        """Remove what recorders that were killed left half written, more than a day ago."""
        for left in self._path.glob("*/.*.parquet.tmp"):
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                    left.unlink()


class Store:
    """An object store as Arrow knows it: an object appears when its last byte has come."""

    def __init__(self, filesystem: Any, path: str) -> None:
        self._filesystem, self._path = filesystem, path

    def put(self, name: str, data: Any) -> None:
        with self._filesystem.open_output_stream(f"{self._path}/{name}") as stream:
            stream.write(data)


def require_place(uri: str) -> None:
    """An error for an address that no file can be put at; nothing is opened."""
    if not uri:
        raise InputError("uri is empty; give a folder, or a place such as s3://bucket/inputs")
    scheme = _URL.match(uri)
    if scheme and scheme[1] not in ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs"):
        raise InputError(f"uri must be a folder, or begin with s3://, gs://, abfs:// or hdfs://; got {uri!r}")


def opened(uri: str) -> Place:
    """The place at an address. Object stores take their credentials from where their own tools do."""
    scheme = _URL.match(uri)
    if scheme is None or scheme[1] == "file":
        return Folder(Path(uri.removeprefix("file://")).expanduser().absolute())
    filesystem, path = open_filesystem(uri)
    return Store(filesystem, path.rstrip("/"))


def is_full(exc: BaseException) -> bool:
    """Whether a file could not be put for want of room."""
    return isinstance(exc, OSError) and exc.errno in _FULL


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
