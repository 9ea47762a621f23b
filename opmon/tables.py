"""Tables put together whose columns differ in their types: logs without types of their own have them batch by batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = pa.Array | pa.ChunkedArray
_MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows in one table: a missing column is null, whole numbers and fractions become fractions, very large ones
    the nearest, and a column whose types have nothing in common becomes text.

    >>> joined([pa.table({"zip": [2139]}), pa.table({"zip": ["SW1A"]})])["zip"].to_pylist()
    ['2139', 'SW1A']
    >>> joined([pa.table({"x": [2**60 + 1]}), pa.table({"x": [0.5]})])["x"].to_pylist()
    [1.152921504606847e+18, 0.5]
    """
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except _MISFITS:
        for name in dict.fromkeys(name for table in tables for name in table.column_names):
            if not _fits(tables, name):
                alike = _as_fractions if _has_fractions(tables, name) else as_text
                tables = [_with(table, name, alike) for table in tables]
    return pa.concat_tables(tables, promote_options="permissive")


def of_rows(rows: Sequence[Mapping[str, object]]) -> pa.RecordBatch:
    """Rows as columns, also where a log has had other types in the meantime: a column whose values have nothing in
    common becomes text.

    >>> of_rows([{"zip": 2139, "hash": 2**63}, {"zip": "SW1A", "hash": 1}]).to_pydict()
    {'zip': ['2139', 'SW1A'], 'hash': [9223372036854775808, 1]}
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.RecordBatch.from_arrays([_of_cells([row.get(name) for row in rows]) for name in names], names)


def as_text(column: Column) -> Column:
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


def _of_cells(cells: Sequence[object]) -> pa.Array:
    whole = all(cell is None or type(cell) is int for cell in cells)
    for kind in (None, pa.uint64())[: 1 + whole]:  # of whole numbers from 2⁶³ on none is found
        try:
            return pa.array(cells, kind)
        except (*_MISFITS, OverflowError):
            continue
    texts = [cell if cell is None or isinstance(cell, str) else json.dumps(cell, default=str) for cell in cells]
    return pa.array(texts, pa.string())


def _fits(tables: Sequence[pa.Table], name: str) -> bool:
    try:
        pa.concat_tables(
            [table.select([name]) for table in tables if name in table.column_names], promote_options="permissive"
        )
    except _MISFITS:
        return False
    return True


def _has_fractions(tables: Sequence[pa.Table], name: str) -> bool:
    """Whether a column holds numbers alone, and fractions among them."""
    kinds = [table.schema.field(name).type for table in tables if name in table.column_names]
    plain = (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind) for kind in kinds)
    return all(plain) and any(map(pa.types.is_floating, kinds))


def _as_fractions(column: Column) -> Column:
    return pc.cast(column, pa.float64(), safe=False)


def _with(table: pa.Table, name: str, alike: Callable[[Column], Column]) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table if place < 0 else table.set_column(place, name, alike(table[name]))
