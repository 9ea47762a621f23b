"""One schema for the rows of several files."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from opmon.errors import InputError, SourceError

Found = tuple[str, bool, pa.Schema]
"""A file's part, whether its types are stated, and its columns."""

_TYPES: Mapping[str, Any] = {
    "string": pa.string,
    "int64": pa.int64,
    "float64": pa.float64,
    "float32": pa.float32,
    "bool": pa.bool_,
}


def declared_types(types: Mapping[str, str]) -> dict[str, pa.DataType]:
    """The Arrow types of the configuration's ``types``."""
    for column, name in types.items():
        if name not in _TYPES:
            raise InputError(f"types: column {column!r} cannot be {name!r}; a type is one of {', '.join(_TYPES)}")
    return {column: _TYPES[name]() for column, name in types.items()}


def unify(found: Iterable[Found], columns: Sequence[str] | None, declared: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of all files, each with a type that holds what every file has there.

    Whole numbers and fractions become fractions. Text files yield to files that state their types; where text files
    differ among themselves the column is text. Anything else that differs is an error.
    """
    types: dict[str, tuple[pa.DataType, bool, str]] = {}
    for part, strong, schema in found:
        for field in schema:
            if columns is None or field.name in columns:
                here = (plain(field.type), strong, part)
                known = types.get(field.name)
                types[field.name] = here if known is None else _merge(field.name, known, here)
    names = list(types) if columns is None else list(dict.fromkeys(columns))
    if columns is not None:
        _require_known(names, types, found)
    fields = []
    for name in names:
        kind, strong, _ = types[name]
        kind = declared.get(name, pa.string() if pa.types.is_null(kind) and not strong else kind)
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values alone: categories, run lengths and views are how they are stored."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def conform(batch: pa.RecordBatch, schema: pa.Schema, part: str) -> pa.RecordBatch:
    """The batch with exactly the columns of ``schema``."""
    if batch.schema.equals(schema):
        return batch
    arrays = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(index)
        try:
            arrays.append(column if column.type == field.type else column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
            raise SourceError(
                f"{part}: column {field.name!r} is {column.type} and cannot be read as {field.type}: {exc}"
            ) from exc
    return pa.record_batch(arrays, schema=schema)


def _merge(name: str, a: tuple[pa.DataType, bool, str], b: tuple[pa.DataType, bool, str]) -> Any:
    (type_a, strong_a, part_a), (type_b, strong_b, part_b) = a, b
    if type_a == type_b:
        return a if strong_a else b
    if strong_a != strong_b:
        return a if strong_a else b
    try:
        both = pa.unify_schemas(
            [pa.schema([(name, type_a)]), pa.schema([(name, type_b)])], promote_options="permissive"
        )
    except pa.ArrowException as exc:
        if not strong_a and not _nested(type_a) and not _nested(type_b):
            return pa.string(), False, part_a
        raise SourceError(
            f"column {name!r} is {type_a} in {part_a} and {type_b} in {part_b}: one round cannot hold both. Write it "
            f"the same way everywhere, or leave one of the files out (pattern)."
        ) from exc
    return both.field(0).type, strong_a, part_b


def _nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _require_known(names: Sequence[str], types: Mapping[str, Any], found: Iterable[Found]) -> None:
    missing = [name for name in names if name not in types]
    if not missing:
        return
    have = list(dict.fromkeys(field.name for _, _, schema in found for field in schema))
    near = difflib.get_close_matches(missing[0], have, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise SourceError(
        f"no file has the column {', '.join(map(repr, missing))}; the columns are: {', '.join(have) or 'none'}.{hint}"
    )
