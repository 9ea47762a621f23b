"""Tables put together whose columns differ in their types: logs without types of their own have them batch by batch."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows in one table: a missing column is null, whole numbers and fractions become fractions, and a column whose
    types have nothing in common becomes text.

    >>> joined([pa.table({"zip": [2139]}), pa.table({"zip": ["SW1A"]})])["zip"].to_pylist()
    ['2139', 'SW1A']
    """
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except _MISFITS:
        for name in dict.fromkeys(name for table in tables for name in table.column_names):
            if not _fits(tables, name):
                tables = [_with_text(table, name) for table in tables]
    return pa.concat_tables(tables, promote_options="permissive")


def as_text(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Values as text, lists and the like as JSON."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        texts = [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
        return pa.array(texts, pa.string())
    try:
        return pc.cast(column, pa.string())
    except _MISFITS:  # bytes that are no text
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _fits(tables: Sequence[pa.Table], name: str) -> bool:
    try:
        pa.concat_tables(
            [table.select([name]) for table in tables if name in table.column_names], promote_options="permissive"
        )
    except _MISFITS:
        return False
    return True


def _with_text(table: pa.Table, name: str) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table if place < 0 else table.set_column(place, name, as_text(table[name]))
