"""Records as a table: each column has one type, and a value of another goes to the column ``misfits``.

The type of a column is the kind that most of its values had so far in this process: one odd request among many changes
nothing for the others. What does not fit is null in its column, and stands as JSON under its column's name in
``misfits``, so that nothing of a record is lost.
"""

from __future__ import annotations

import array
import json
import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import cast

import pyarrow as pa

from opmon.recorder._entries import OWN, Row
from opmon.recorder._owned import Block

MISFITS = "misfits"
MOST_COLUMNS = 2_000
"""A file has no more columns: what comes under other names is a misfit."""
_KINDS: Mapping[type, str] = {
    bool: "truth", int: "number", float: "number", str: "text", bytes: "bytes", datetime: "moment", date: "day",
    time: "time", timedelta: "span", Decimal: "decimal", Block: "list", list: "list", dict: "struct",
}  # fmt: skip
_ARROW = {
    "?": pa.bool_(), "b": pa.int8(), "B": pa.uint8(), "h": pa.int16(), "H": pa.uint16(), "i": pa.int32(),
    "I": pa.uint32(), "q": pa.int64(), "Q": pa.uint64(), "e": pa.float16(), "f": pa.float32(), "d": pa.float64(),
    "l": pa.int64() if struct.calcsize("l") == 8 else pa.int32(),
    "L": pa.uint64() if struct.calcsize("L") == 8 else pa.uint32(),
}  # fmt: skip
_FAULTS = (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError)
_AT_ONCE = 2_000
"""Values that are made Arrow's in one go, in which no other thread of Python runs."""


class Columns:
    """Makes tables of records, and remembers what kinds of values each column had."""

    def __init__(self) -> None:
        self._kinds: dict[str, Counter[str]] = {}

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """The records as a table, in order; the columns as they first came."""
        names = dict.fromkeys(name for row in rows for name in row)
        inputs = [name for name in names if name not in OWN][:MOST_COLUMNS]
        misfits: list[dict[str, object]] = [{} for _ in rows]
        columns: dict[str, object] = {
            "id": _whole([row["id"] for row in rows], pa.string()),
            "timestamp": pa.chunked_array(
                [pa.array([cast(int, row["timestamp"]) // 1000 for row in rows], _MICROSECONDS)]
            ),
        }
        for name in (*inputs, "prediction", "scores"):
            columns[_printable(name)] = self._column(name, [row.get(name) for row in rows], misfits)
        columns["model_version"] = _whole([row["model_version"] for row in rows], pa.string())
        columns["inclusion"] = _whole([row["inclusion"] for row in rows], pa.float64())
        kept = {*inputs, *OWN}
        if len(inputs) < len(names) - len(OWN):
            for row, odd in zip(rows, misfits, strict=True):
                odd |= {name: value for name, value in row.items() if name not in kept}
        if any(misfits):
            columns[MISFITS] = _whole([as_text(odd) if odd else None for odd in misfits], pa.string())
        return pa.table(columns)

    def _column(self, name: str, values: list[object], misfits: Sequence[dict[str, object]]) -> pa.ChunkedArray:
        """The values in the kind that most of them have; the others go to ``misfits`` and are null here."""
        kinds = Counter[str]()
        for kind, times in Counter(map(type, values)).items():
            if kind is not NoneType:
                kinds[_KINDS[kind]] += times
        if not kinds:
            return pa.chunked_array([pa.nulls(len(values))])
        so_far = self._kinds.setdefault(name, Counter())
        so_far.update(kinds)
        most = max(kinds, key=lambda kind: so_far[kind])
        if len(kinds) > 1:
            for place, value in enumerate(values):
                if value is not None and _KINDS[type(value)] != most:
                    misfits[place][name], values[place] = value, None
        made = _blocks(values) if most == "list" else None
        if made is not None:
            return pa.chunked_array([made])
        plain = [_plain(value) for value in values] if most in ("list", "struct") else values
        try:
            return _whole(plain)
        except _FAULTS:
            return _singly(name, plain, misfits)


_MICROSECONDS = pa.timestamp("us", "UTC")


def _whole(values: list[object], kind: pa.DataType | None = None) -> pa.ChunkedArray:
    """The values as one type, made in pieces."""
    pieces = [pa.array(values[at : at + _AT_ONCE], kind) for at in range(0, max(1, len(values)), _AT_ONCE)]
    schema = pa.unify_schemas([pa.schema([("", piece.type)]) for piece in pieces], promote_options="permissive")
    one = schema.field(0).type
    if pa.types.is_struct(one) and len(pieces) > 1:
        return pa.chunked_array([pa.array(values, one)])
    return pa.chunked_array([piece.cast(one) for piece in pieces], one)


def _singly(name: str, values: list[object], misfits: Sequence[dict[str, object]]) -> pa.ChunkedArray:
    """The values where they are not of one type inside: that of the first that has one; the others are misfits."""
    kept: list[object] = [None] * len(values)
    first: pa.DataType | None = None
    for place, value in enumerate(values):
        try:
            kept[place] = pa.array([_number(value)], first)[0].as_py()
            if first is None and value is not None:
                first = pa.array([_number(value)]).type
        except _FAULTS:
            misfits[place][name] = value
    return pa.chunked_array([pa.array(kept, first)])


def _number(value: object) -> object:
    """A whole number beyond 64 bits as a float, text that is not Unicode as it can be written."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return _printable(value) if isinstance(value, str) else value


def _blocks(values: Sequence[object]) -> pa.Array | None:
    """Arrays and lists of numbers without a look at each of them; None where they are not all of one kind."""
    blocks = [value for value in values if type(value) is Block]
    if len(blocks) < sum(value is not None for value in values):
        return None
    if len({(block.format, len(block.shape), block.shape[1:]) for block in blocks}) != 1 or blocks[0].format == "?":
        return None
    data, block = b"".join([part.data for part in blocks]), blocks[0]
    kind = _ARROW[block.format]
    flat = pa.Array.from_buffers(kind, len(data) // struct.calcsize(block.format), [None, pa.py_buffer(data)])
    for width in reversed(block.shape[1:]):
        count = len(flat) // width if width else 0
        flat = pa.ListArray.from_arrays(pa.array(range(0, (count + 1) * width, width or 1), pa.int32()), flat)
    ends, at = array.array("i", [0]), 0
    for value in values:
        at += value.shape[0] if type(value) is Block else 0
        ends.append(at)
    missing = pa.array([value is None for value in values]) if len(blocks) < len(values) else None
    offsets = pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends.tobytes())])
    return pa.ListArray.from_arrays(offsets, flat, mask=missing)


def _plain(value: object) -> object:
    """The value with every block in it as a list."""
    if type(value) is Block:
        return value.values()
    if type(value) is list:
        return [_plain(each) for each in value]
    if type(value) is dict:
        return {_printable(name): _plain(each) for name, each in value.items()}
    return value


def as_text(value: object) -> str:
    """A value as JSON; what JSON has no word for as text."""
    return _printable(json.dumps(_finite(_plain(value)), default=_told, ensure_ascii=False))


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


def _told(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _printable(text: str) -> str:
    """The text with what is not Unicode in it as escapes."""
    return text.encode(errors="backslashreplace").decode()
