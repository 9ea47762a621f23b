"""Copies of what serving code gives, which nobody can change while they wait to be written."""

from __future__ import annotations

import dataclasses
import struct
import sys
from collections.abc import Mapping, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from types import NoneType
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

FORMATS = frozenset("?bBhHiIlLqQefd")
"""The buffers of numbers that are copied whole, by their letters in :mod:`struct`."""

_PLAIN = frozenset({NoneType, bool, int, float, str, bytes, datetime, date, time, timedelta, Decimal})
_BYTES = (bytes, bytearray, memoryview)
_DEEPEST = 32
_EMPTY = 100
_METHODS = ("model_dump", "tolist", "to_pylist", "_asdict")
"""How objects of pydantic, NumPy, torch, Arrow and named tuples say what they hold."""


class Unwritable(Exception):
    """A value that no column can hold."""


class Block(NamedTuple):
    """Numbers of one kind side by side: an array, or a list of numbers."""

    data: bytes
    format: str
    shape: tuple[int, ...]

    def values(self) -> object:
        """The numbers as lists."""
        flat = list(struct.unpack(f"{len(self.data) // struct.calcsize(self.format)}{self.format}", self.data))
        for width in reversed(self.shape[1:]):
            flat = [flat[at : at + width] for at in range(0, len(flat), max(1, width))]
        return flat

    def row(self, number: int) -> object:
        """What lies at one place of the first dimension."""
        step = len(self.data) // self.shape[0]
        data = self.data[number * step : (number + 1) * step]
        return Block(data, self.format, self.shape[1:]) if len(self.shape) > 1 else struct.unpack(self.format, data)[0]


_HOLDING = frozenset({Block, dict, list})


def owned(value: object, depth: int = 0) -> object:
    """The value, or a copy of it where it could be changed later; numbers in lists and arrays become a block.

    >>> owned({"age": 41, "marks": [1.5, 2.0]})["marks"].values()
    [1.5, 2.0]
    """
    kind = type(value)
    if kind in _PLAIN or kind is Block:
        return value
    if depth > _DEEPEST:
        raise Unwritable(f"it is nested deeper than {_DEEPEST} levels")
    if type(value) is list or type(value) is tuple:
        return _of_list(value, depth)
    if type(value) is dict:
        return _of_mapping(value, depth)
    return _of_object(value, depth)


def size(value: object) -> int:
    """About how many bytes an owned value takes in memory."""
    if type(value) is Block:
        return len(value.data) + _EMPTY
    if value is None:
        return 0
    if type(value) is dict or type(value) is list:
        parts = value.values() if type(value) is dict else value
        return _EMPTY + sum(map(sys.getsizeof, parts)) + sum(size(part) for part in parts if type(part) in _HOLDING)
    return sys.getsizeof(value)


def _of_list(value: list[object] | tuple[object, ...], depth: int) -> object:
    first = type(value[0]) if value else None
    if first is float or first is int:
        letter = _LETTER[first]
        try:
            return Block(struct.pack(f"{len(value)}{letter}", *value), letter, (len(value),))
        except (struct.error, OverflowError, TypeError):
            kinds = set(map(type, value))
            if kinds == {int, float}:
                return Block(struct.pack(f"{len(value)}d", *value), "d", (len(value),))
    if _PLAIN.issuperset(map(type, value)):
        return list(value)
    return [owned(each, depth + 1) for each in value]


_LETTER = {float: "d", int: "q"}


def _of_mapping(value: Mapping[object, object], depth: int) -> dict[str, object] | None:
    if _PLAIN.issuperset(map(type, value.values())) and all(type(name) is str for name in value):
        return cast("dict[str, object]", dict(value)) or None
    return {str(name): owned(each, depth + 1) for name, each in value.items()} or None


def _of_object(value: object, depth: int) -> object:
    """What an object holds that is of none of Python's own kinds."""
    if isinstance(value, _BYTES):
        return bytes(value)
    block = _of_buffer(value)
    if block is not None:
        return block
    if isinstance(value, Enum):
        return owned(value.value, depth + 1)
    if isinstance(value, date | timedelta):
        return _of_moment(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str | UUID | PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return _of_mapping(value, depth)
    if isinstance(value, Set | list | tuple) and not hasattr(value, "_asdict"):
        return _of_list(list(value), depth)
    for name in _METHODS:
        method = getattr(value, name, None)
        if callable(method):
            return owned(method(), depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return owned({field.name: getattr(value, field.name) for field in dataclasses.fields(value)}, depth + 1)
    raise Unwritable(f"a value of type {type(value).__module__}.{type(value).__qualname__} has no column that holds it")


def _of_moment(value: date | timedelta) -> object:
    """A moment, day or span of another library, such as pandas', as Python's own, to the microsecond; None for NaT."""
    if value != value:
        return None
    if isinstance(value, datetime):
        return datetime.combine(value.date(), value.time(), value.tzinfo)
    if isinstance(value, timedelta):
        return timedelta(value.days, value.seconds, value.microseconds)
    return date(value.year, value.month, value.day)


def _of_buffer(value: object) -> Block | None:
    """An array as a copy of its bytes; None where it has no buffer of plain numbers, or no dimension."""
    try:
        view = memoryview(cast("ReadableBuffer", value))
    except (TypeError, ValueError, BufferError):
        return None
    letter = view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>")
    if letter not in FORMATS or not view.ndim or struct.calcsize(letter) != view.itemsize:
        return None
    return Block(view.tobytes(), letter, tuple(view.shape or ()))
