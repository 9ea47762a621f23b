"""Columns that lie inside others: ``features.age`` of a struct, a map, or text that holds JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from opmon.errors import SourceError
from opmon.sources._around import Around
from opmon.sources._halves import with_whole_signs
from opmon.tables import joined
from opmon.types import Batch, Json, Slice

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_DEEPEST, _LONGEST = 64, 16 << 20
"""JSON that is nested deeper, or longer, has no values."""

Step = str | int


def is_path(name: str) -> bool:
    """Whether a column's name may mean something inside another column.

    >>> is_path("features.age"), is_path("scores[1]"), is_path("age")
    (True, True, False)
    """
    return "." in name or "[" in name


@dataclass(frozen=True)
class Nested(Around):
    """Another source whose batches also have the columns ``paths``, as far as they are not there by that name."""

    paths: tuple[str, ...]
    may_lack: bool = False
    """Whether rows may have nothing at a path, because all of them lack it; otherwise that is an error in the path."""

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        outer = None if columns is None else self._outer(slices, columns)
        for batch in self.source.read(slices, outer):
            rows = self._with_paths(batch.rows)
            yield replace(batch, rows=rows if columns is None else rows.select(list(columns)))

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        for batch in self.source.read_some(slices, numbers):
            yield replace(batch, rows=self._with_paths(batch.rows))

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        table = self.source.fetch(slices, rows).combine_chunks()
        batches = [self._with_paths(batch) for batch in table.to_batches()]
        return joined([pa.Table.from_batches([batch]) for batch in batches]) if batches else table

    def _outer(self, slices: Sequence[Slice], columns: Sequence[str]) -> list[str] | None:
        """The columns to read for ``columns``; None (all) where they cannot be told before reading."""
        if not any(name in self.paths for name in columns):
            return list(columns)
        first = next(iter(self.source.read(slices)), None)
        if first is None:
            return None
        names, roots = first.rows.schema.names, dict[str, None]()
        for name in columns:
            root = _root(names, name)
            if root is None:
                have = ", ".join(names)
                raise SourceError(f"the inputs have no column {name!r}, and none that it lies in; they have: {have}")
            roots[root] = None
        return list(roots)

    def _with_paths(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        names, parsed = rows.schema.names, dict[str, list[Json]]()
        for path in self.paths:
            if path in names:
                continue
            root = _root(names, path)
            if root is not None:
                steps = _steps(path[len(root) :])
                try:
                    inner = _inside(rows.column(names.index(root)), root, steps, path, parsed)
                except SourceError:
                    if not self.may_lack:
                        raise
                    inner = pa.nulls(rows.num_rows)
                rows = rows.append_column(path, inner)
        return rows


def _root(names: Sequence[str], path: str) -> str | None:
    """The column that a path lies in: the longest name that it begins with; None where there is none."""
    outer = [name for name in names if path == name or path.startswith((f"{name}.", f"{name}["))]
    return max(outer, key=len, default=None)


def _steps(path: str) -> list[Step]:
    """
    >>> _steps(".features[0].age")
    ['features', 0, 'age']
    """
    return [int(number) if number else name for name, number in _STEP.findall(path)]


def _inside(column: pa.Array, shown: str, steps: Sequence[Step], path: str, parsed: dict[str, list[Json]]) -> pa.Array:
    """What lies at the steps in each row of a column; nothing where a row has no such thing."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not steps:
        return column
    kind, step = column.type, steps[0]
    where = f"{shown}[{step}]" if isinstance(step, int) else f"{shown}.{step}"
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        if step not in names:
            raise SourceError(f"column {path!r}: {shown!r} has no field {step!r}; it has: {', '.join(names[:20])}")
        part = column.field(names.index(str(step)))
        return _inside(pc.if_else(column.is_valid(), part, None), where, steps[1:], path, parsed)
    if pa.types.is_map(kind):
        return _inside(pc.map_lookup(column, pa.scalar(step, kind.key_type), "first"), where, steps[1:], path, parsed)
    if isinstance(step, int) and (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        long = pc.if_else(pc.greater(lengths, step), column, None)
        if not pc.any(long.is_valid()).as_py():
            return pa.nulls(len(column), kind.value_type)
        return _inside(_element(long, step), where, steps[1:], path, parsed)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if shown not in parsed:
            parsed[shown] = [as_json(text) for text in column.to_pylist()]
        return as_array([_at(value, steps) for value in parsed[shown]])
    raise SourceError(f"column {path!r}: {shown!r} is {kind}, which has nothing inside; correct the path")


def _element(column: pa.Array, step: int) -> pa.Array:
    """One element of each list; null where there is no list."""
    valid = column.is_valid()
    taken = pc.list_element(column.filter(valid), step)
    places = pc.if_else(valid, pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1), None)
    return taken.take(places)


def as_json(text: str | None) -> Json:
    """What a text says as JSON; None where it says nothing, or nothing that should be looked into.

    Half of a surrogate pair, which no column of text can hold, is a question mark.

    >>> as_json('{"name": "\\\\ud83d!"}')
    {'name': '?!'}
    """
    if text is None or len(text) > _LONGEST or _depth(text) > _DEEPEST:
        return None
    try:
        return with_whole_signs(json.loads(text), text)
    except (ValueError, RecursionError):
        return None


def _depth(text: str) -> int:
    """An upper bound of how deep JSON is nested, from the brackets that open."""
    opened = text.count("[") + text.count("{")
    if opened <= _DEEPEST:
        return opened
    depth = deepest = 0
    for sign in re.findall(r"[\[\]{}]", text):
        depth += 1 if sign in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _at(value: object, steps: Sequence[Step]) -> object:
    for step in steps:
        if isinstance(value, str):
            value = as_json(value)  # JSON inside JSON, as some gateways log it
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def as_array(values: Sequence[object]) -> pa.Array:
    """The values in one type: numbers where all are numbers, else lists as they are, else text."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        return pa.array([_as_float(value) if isinstance(value, int | float) else None for value in values])
    return pa.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values])


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf if value > 0 else -math.inf
