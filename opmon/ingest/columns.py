"""Columns of what was sent: one that was a number once stays one, whatever a sender writes into it later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import pyarrow as pa

from opmon.types import Json

MOST = 5000
"""Columns of a monitor; what names more of them is left out."""
_LARGEST = 2**63


class Kind(StrEnum):
    """What the values of a column are."""

    BOOL = "bool"
    NUMBER = "number"
    NUMBERS = "numbers"
    TEXT = "text"

    @classmethod
    def of(cls, value: Json) -> Kind | None:
        """The kind of one value; None where it has none. Objects, and lists of other things, are text: their JSON."""
        if value is None:
            return None
        if isinstance(value, bool):
            return cls.BOOL
        if isinstance(value, int | float):
            return cls.NUMBER
        return cls.NUMBERS if _numbers(value) is not None else cls.TEXT

    @classmethod
    def of_type(cls, kind: pa.DataType) -> Kind | None:
        """The kind of a column of a file."""
        if pa.types.is_boolean(kind):
            return cls.BOOL
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return cls.NUMBER
        return cls.NUMBERS if pa.types.is_list(kind) else cls.TEXT if pa.types.is_string(kind) else None


Row: TypeAlias = Mapping[str, Json]


@dataclass
class Columns:
    """The columns of one monitor so far, and how many values did not fit theirs."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    misfits: dict[str, int] = field(default_factory=dict)
    left_out: int = 0

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """The rows as columns; what does not fit is missing."""
        names = dict.fromkeys(name for row in rows for name in row)
        made: dict[str, pa.Array] = {}
        for name in names:
            if name not in self.kinds and len(self.kinds) >= MOST:
                self.left_out += 1
                continue
            made[name] = self._array(name, [row.get(name) for row in rows])
        return pa.table(made)

    def _array(self, name: str, values: Sequence[Json]) -> pa.Array:
        kind = self.kinds.get(name) or next(filter(None, map(Kind.of, values)), None)
        if kind is None:
            return pa.nulls(len(values))
        self.kinds[name] = kind
        fitting = [None if value is None else _FIT[kind](value) for value in values]
        wrong = sum(found is None and value is not None for found, value in zip(fitting, values, strict=True))
        if wrong:
            self.misfits[name] = self.misfits.get(name, 0) + wrong
        if kind is Kind.NUMBER and not all(found is None or isinstance(found, int) for found in fitting):
            return pa.array([None if found is None else float(found) for found in fitting], pa.float64())
        return pa.array(fitting, _TYPES[kind])


def _bool(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: Json) -> int | float | None:
    """The number; also one that is written as text."""
    try:
        if isinstance(value, int):
            return int(value) if -_LARGEST <= value < _LARGEST else float(value)
        return float(value) if isinstance(value, float | str) else None
    except (ValueError, OverflowError):
        return None


def _numbers(value: Json) -> list[float | None] | None:
    if not isinstance(value, list):
        return None
    try:
        if all(each is None or (isinstance(each, int | float) and not isinstance(each, bool)) for each in value):
            return [float(each) if isinstance(each, int | float) else None for each in value]
    except OverflowError:
        pass
    return None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_FIT: Mapping[Kind, Callable[[Json], Any]] = {
    Kind.BOOL: _bool,
    Kind.NUMBER: _number,
    Kind.NUMBERS: _numbers,
    Kind.TEXT: _text,
}
_TYPES = {
    Kind.BOOL: pa.bool_(),
    Kind.NUMBER: pa.int64(),
    Kind.NUMBERS: pa.list_(pa.float64()),
    Kind.TEXT: pa.string(),
}
