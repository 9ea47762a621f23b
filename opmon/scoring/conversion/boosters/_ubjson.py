"""A reader of Universal Binary JSON, as XGBoost writes it: typed arrays come as arrays, and lengths are checked."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from opmon.errors import ModelError
from opmon.types import Array

_DEEPEST = 32
_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_PLAIN = {"Z": None, "T": True, "F": False}


def read_ubjson(data: bytes) -> Any:
    """The value that the bytes hold, of any type, as ``json.loads`` gives it.

    >>> read_ubjson(b"{L" + bytes([0] * 7 + [1]) + b"a[$U#U" + bytes([2, 7, 9]) + b"}")
    {'a': array([7, 9], dtype=uint8)}
    """
    try:
        return _Reader(data).value()
    except (struct.error, ValueError, UnicodeDecodeError) as exc:
        raise ModelError(f"it is no UBJSON: {exc}") from exc


class _Reader:
    """A reader of bytes, from where it has come to."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def value(self, depth: int = 0) -> object:
        return self._of_kind(self._kind(), depth)

    def _of_kind(self, kind: str, depth: int) -> object:
        if depth > _DEEPEST:
            raise ModelError(f"it is no model: more than {_DEEPEST} values lie inside of each other")
        if kind in _PLAIN:
            return _PLAIN[kind]
        if kind in _NUMBERS:
            return self._numbers(kind, 1)[0].item()
        match kind:
            case "S":
                return self._text()
            case "C":
                return self._take(1).decode("ascii")
            case "[":
                return self._array(depth)
            case "{":
                return self._object(depth)
        raise ValueError(f"unknown type {kind!r} at byte {self._at - 1}")

    def _array(self, depth: int) -> Array | list[object]:
        kind, count = self._declared()
        if kind in _NUMBERS and count is not None:
            return self._numbers(kind, count).astype(np.dtype(_NUMBERS[kind]).newbyteorder("="))
        values: list[object] = []
        while count is None or len(values) < count:
            value_kind = kind or self._kind()
            if value_kind == "]" and count is None:
                break
            values.append(self._of_kind(value_kind, depth + 1))
        return values

    def _object(self, depth: int) -> dict[str, object]:
        kind, count = self._declared()
        values: dict[str, object] = {}
        while count is None or len(values) < count:
            if count is None and self._data[self._at : self._at + 1] == b"}":
                self._at += 1
                break
            name = self._text()
            values[name] = self._of_kind(kind or self._kind(), depth + 1)
        return values

    def _declared(self) -> tuple[str | None, int | None]:
        """The type and the number of what follows, where they are given."""
        kind = None
        if self._data[self._at : self._at + 1] == b"$":
            self._at += 1
            kind = self._kind()
        if self._data[self._at : self._at + 1] == b"#":
            self._at += 1
            return kind, self._length()
        if kind is not None:
            raise ValueError("a type without a count")
        return None, None

    def _length(self) -> int:
        count = self._of_kind(self._kind(), 0)
        if not isinstance(count, int) or not 0 <= count <= len(self._data):
            raise ValueError(f"a length of {count}")
        return count

    def _text(self) -> str:
        return self._take(self._length()).decode("utf-8")

    def _numbers(self, kind: str, count: int) -> Array:
        size = np.dtype(_NUMBERS[kind]).itemsize
        return np.frombuffer(self._take(size * count), _NUMBERS[kind])

    def _kind(self) -> str:
        kind = "N"
        while kind == "N":  # stands for nothing
            kind = self._take(1).decode("ascii")
        return kind

    def _take(self, count: int) -> bytes:
        data = self._data[self._at : self._at + count]
        if len(data) < count:
            raise ValueError("it ends too early")
        self._at += count
        return data
