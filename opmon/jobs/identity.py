"""A name for a value by all that it holds: what was made for the same job is the same."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def identity(value: object) -> str:
    """A text that is the same for the same content, in every process; a file counts by its size and time of writing.

    >>> identity({"a": 1, "b": (2.0, None)}) == identity({"a": 1, "b": (2.0, None)})
    True
    >>> identity((1, "2")) == identity((1, 2))
    False
    """
    return hashlib.sha256(repr(_plain(value)).encode()).hexdigest()[:24]


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(item.name, _plain(getattr(value, item.name))) for item in dataclasses.fields(value)]
        return [type(value).__module__, type(value).__qualname__, fields]
    if isinstance(value, Mapping):
        return ["mapping", [(_plain(key), _plain(item)) for key, item in value.items()]]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [_plain(item) for item in value]]
    if isinstance(value, set | frozenset):
        return ["set", sorted(repr(_plain(item)) for item in value)]
    if isinstance(value, np.ndarray):
        return ["array", str(value.dtype), value.shape, hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()]
    if isinstance(value, Path):
        return ["path", str(value), _written(value)]
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    try:
        content = pickle.dumps(value)
    except Exception:  # noqa: BLE001 - a plugin's own value, which cannot leave this process: it is like no other
        return [type(value).__qualname__, os.getpid(), id(value)]
    return [type(value).__qualname__, hashlib.sha256(content).hexdigest()]


def _written(path: Path) -> tuple[int, int] | None:
    """The size of a file and when it was written."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns) if path.is_file() else None
