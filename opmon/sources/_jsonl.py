"""JSON lines: one object per line; types are inferred from the head of the file, once, so that they cannot flip.

Arrow's parser does the work. What it cannot read but is well meant (``NaN`` as Python writes it, a number where the
column is text) goes through Python's, line by line. A column with different kinds of values is text: their JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from opmon.sources._folder import Entry
from opmon.sources._lines import BOM, Lines, read_range


@dataclass(frozen=True, slots=True)
class Jsonl:
    """One JSON object per line."""

    max_row_bytes: int

    def lines(self, entry: Entry) -> Lines:
        return Lines(None, self.max_row_bytes)

    def begin(self, entry: Entry) -> int | None:
        return len(BOM) if read_range(entry, 0, len(BOM)) == BOM else 0

    def infer(self, entry: Entry, data: bytes) -> pa.Schema:
        """The types of the rows in ``data``."""
        try:
            schema = _read(data, None).schema
        except pa.ArrowException:
            rows = _objects(data)
            names = list(dict.fromkeys(name for row in rows for name in row))
            schema = pa.schema([(name, _kind([row.get(name) for row in rows])) for name in names])
        return pa.schema([(field.name, _simple(field.type)) for field in schema])

    def parse(self, entry: Entry, data: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """The rows in ``data`` as ``schema`` has them."""
        try:
            batches = _read(data, schema).combine_chunks().to_batches()
            if len(batches) == 1 and len(schema):
                return batches[0].select(schema.names)
        except pa.ArrowException:
            pass  # the slow way says where it is wrong, or reads it
        rows = _objects(data)
        if not len(schema):
            return pa.RecordBatch.from_struct_array(pa.nulls(len(rows), pa.struct([])))
        return pa.record_batch([_column(rows, field) for field in schema], schema=schema)


def _read(data: bytes, schema: pa.Schema | None) -> pa.Table:
    return pajson.read_json(
        pa.BufferReader(data),
        read_options=pajson.ReadOptions(block_size=len(data) + 1),
        parse_options=pajson.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    )


def _objects(data: bytes) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except RecursionError as exc:
            raise ValueError("the JSON is nested too deeply") from exc
        if not isinstance(row, dict):
            raise ValueError(f'a line must be a JSON object such as {{"id": 1}}; got {_short(row)}')
        rows.append(row)
    return rows


def _column(rows: list[Mapping[str, Any]], field: pa.Field) -> pa.Array:
    values = [row.get(field.name) for row in rows]
    if pa.types.is_string(field.type):
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    try:
        array = pa.array(values, field.type)
        _require_whole(array, values)
        return array
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
        raise ValueError(
            f"column {field.name!r} is {field.type} in the first rows of the file, and is not here: {exc}. Write it "
            f"the same way everywhere, or say types: {{{field.name}: string}} (or float64)"
        ) from exc


def _require_whole(array: pa.Array, values: list[Any]) -> None:
    """Arrow cuts the fraction off where a column of whole numbers gets one, without a word."""
    wide = _widened(array.type)
    if wide != array.type and not array.cast(wide, safe=False).equals(pa.array(values, wide)):
        raise ValueError("a fraction where whole numbers were")


def _widened(kind: pa.DataType) -> pa.DataType:
    """The type with fractions in place of whole numbers, also inside lists and objects."""
    if pa.types.is_integer(kind):
        return pa.float64()
    if pa.types.is_list(kind):
        return pa.list_(_widened(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _widened(field.type)) for field in kind])
    return kind


def _kind(values: list[Any]) -> pa.DataType:
    try:
        return pa.array(values).type
    except (pa.ArrowException, OverflowError, TypeError):
        return pa.string()


def _simple(kind: pa.DataType) -> pa.DataType:
    """Dates and times stay the text they are, also inside lists and objects."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_simple(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _simple(field.type)) for field in kind])
    return kind


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
