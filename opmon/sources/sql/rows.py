"""Rows of a database as Arrow batches of bounded size, with the types that the relation says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from opmon.sources._salvage import Flaw, Salvage
from opmon.sources.sql.connecting import Session
from opmon.sources.sql.relation import Column

_FIRST, _MOST, _BYTES = 64, 20_000, 16 << 20
_LONGEST = 80


def batches(opened: Session, statement: sa.Executable, columns: Sequence[Column]) -> Iterator[pa.RecordBatch | Flaw]:
    """What the statement gives, as it comes, and in their place the rows that do not fit; without being held whole."""
    opened.step()
    connection = opened.connection.execution_options(stream_results=True, max_row_buffer=1)
    salvage, size, at = Salvage(), _FIRST, 0
    with connection.execute(statement) as result:
        while rows := _fetched(opened, result, size):

            def fitted(numbers: Sequence[int], begin: int = at, rows: Sequence[Any] = rows) -> pa.RecordBatch:
                return record_batch(rows[numbers[0] - begin : numbers[-1] + 1 - begin], columns, opened.dialect)

            taken = 0
            for found in salvage.parsed(range(at, at + len(rows)), fitted, {}, len(rows)):
                taken += 0 if isinstance(found, Flaw) else found.nbytes
                yield found
            at += len(rows)
            size = max(1, min(_MOST, size * 8, _BYTES * len(rows) // max(taken, 1)))


def record_batch(rows: Sequence[Any], columns: Sequence[Column], dialect: str) -> pa.RecordBatch:
    """The rows as columns; ValueError, naming the column, where a value cannot be had in its type."""
    schema = pa.schema([(column.name, column.kind) for column in columns])
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.nulls(len(rows), pa.struct([])))
    arrays = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=False):  # a row may have more behind them
        try:
            arrays.append(_array(values, column.kind, dialect == "postgresql"))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
            raise ValueError(
                f"column {column.name!r} is {column.kind} and cannot hold {_culprit(values, column.kind)}. "
                f"Say types: {{{column.name}: string}} to take it as text."
            ) from exc
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _fetched(opened: Session, result: sa.CursorResult[Any], size: int) -> Sequence[Any]:
    opened.step()
    return result.fetchmany(size)


def _array(values: Sequence[Any], kind: pa.DataType, is_typed: bool) -> pa.Array:
    """The values in one type. ``is_typed``: the database saw to it that they are of it already."""
    if is_typed and not pa.types.is_string(kind):
        return pa.array(values, kind)
    if pa.types.is_string(kind) and not any(isinstance(value, bytes) for value in values[:1]):
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError):
            return pa.array([None if value is None else _text(value) for value in values], kind)
    found = pa.array(values)
    if pa.types.is_floating(kind) and pa.types.is_decimal(found.type):
        return pa.array([None if value is None else float(value) for value in values], kind)
    if pa.types.is_floating(kind) and pa.types.is_integer(found.type):
        return found.cast(kind, safe=False)
    if pa.types.is_floating(kind) and not (pa.types.is_floating(found.type) or pa.types.is_null(found.type)):
        raise ValueError
    if pa.types.is_timestamp(kind) and pa.types.is_string(found.type):
        return _times(found, kind)
    if pa.types.is_timestamp(kind) and not (pa.types.is_timestamp(found.type) or pa.types.is_null(found.type)):
        raise ValueError
    return found if found.type == kind else found.cast(kind)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        raise ValueError("bytes")
    return str(value)


def _times(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Times that were written as text; without a zone they are in UTC."""
    has_zone = pc.match_substring_regex(texts, r"(Z|[+-]\d\d:?\d\d)$")
    texts = pc.if_else(has_zone, texts, pc.binary_join_element_wise(texts, "Z", ""))
    found = texts.cast(pa.timestamp("us", "UTC"))
    return found if found.type == kind else found.cast(kind)


def _culprit(values: Sequence[Any], kind: pa.DataType) -> str:
    for value in values:
        try:
            _array([value], kind, is_typed=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            shown = repr(value)
            return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
    return "all of these values together"
