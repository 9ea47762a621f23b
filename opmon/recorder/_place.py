"""Where files are put: a folder of this machine, or an object store. A file is there whole or not at all."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from opmon.errors import InputError
from opmon.stores import open_filesystem, scheme_of, store_url

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LEFT_SECONDS = 86_400.0


class Place(Protocol):
    """Takes files by names below it; the same name again is the same file."""

    def put(self, name: str, data: pa.Buffer) -> None: ...


class Folder:
    """A folder of this machine: written under a name that no source reads, made durable, and renamed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tidied = False

    def put(self, name: str, data: pa.Buffer) -> None:
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

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem, self._path = filesystem, path

    def put(self, name: str, data: pa.Buffer) -> None:
        with self._filesystem.open_output_stream(f"{self._path}/{name}") as stream:
            stream.write(data)


def prepare(uri: str) -> None:
    """What an address needs before there are threads and forks; an error for one that no file can be put at.

    Arrow closes its stores when Python ends: recorders that are made after its import end before that. And where its S3
    begins in another thread than the one that forks, a child that writes never ends.
    """
    if not uri:
        raise InputError("uri is empty; give a folder, or a place such as s3://bucket/inputs")
    if scheme_of(uri) in (None, "file"):
        return
    try:
        store_url(uri)
    except InputError as exc:
        raise InputError(f"uri {exc}") from exc
    from pyarrow.fs import ensure_s3_initialized

    if scheme_of(uri) == "s3":
        ensure_s3_initialized()


def opened(uri: str) -> Place:
    """The place at an address. Object stores take their credentials from where their own tools do."""
    if scheme_of(uri) in (None, "file"):
        return Folder(Path(uri.removeprefix("file://")).expanduser().absolute())
    filesystem, path = open_filesystem(uri)
    return Store(filesystem, path)


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
