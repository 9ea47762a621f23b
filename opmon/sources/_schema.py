"""One schema for the rows of several files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from opmon.errors import InputError, SourceError
from opmon.sources._damage import Conflicting, Damaged
from opmon.sources._partitions import Partition, partitions_of, schema_of
from opmon.wording import did_you_mean, nearest

MOST_COLUMNS = 50_000
"""A file of more columns is refused: each takes some ten thousand bytes, however few rows there are."""

_TYPES: Mapping[str, pa.DataType] = {
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


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a column so far, and the file that says so."""

    kind: pa.DataType
    strong: bool
    part: str


@dataclass(slots=True)
class Columns:
    """The columns of all files so far, each with a type that holds what every file has there.

    A declared type is every file's. Whole numbers and fractions become fractions. Text files yield to files that state
    their types; where text files differ among themselves the column is text. A file that fits none of it is refused,
    and leaves nothing behind.
    """

    declared: Mapping[str, pa.DataType]
    _known: dict[str, _Known] = field(default_factory=dict)
    _in_files: set[str] = field(default_factory=set)
    _folders: set[str] = field(default_factory=set)
    _of_folders: set[str] = field(default_factory=set)

    def add(self, part: str, strong: bool, schema: pa.Schema) -> None:
        """Take the columns of one more file, or raise Damaged."""
        new = {}
        for column in schema:
            here = _Known(self._stated(part, strong, column), strong, part)
            before = self._known.get(column.name)
            if before is None or before.kind != here.kind or before.strong != here.strong:
                new[column.name] = here if before is None else _merged(column.name, before, here)
        self._known |= new
        self._in_files.update(schema.names)

    def add_folders(self, part: str) -> None:
        """Take the columns that the folders of a file name; what a file has itself is that file's to say."""
        folder = part.rpartition("/")[0]
        if folder in self._folders:
            return
        for name, value in partitions_of(part).items():
            self._require_castable(part, name, value)
        self._folders.add(folder)
        for column in schema_of(part):
            self._of_folders.add(column.name)
            if column.name not in self._in_files:
                here = _Known(self._stated(part, False, column), False, part)
                before = self._known.get(column.name)
                self._known[column.name] = here if before is None else _merged(column.name, before, here)

    @property
    def of_folders(self) -> frozenset[str]:
        """The columns that stand in the folders' names, and perhaps in some of the files."""
        return frozenset(self._of_folders)

    @property
    def in_files(self) -> frozenset[str]:
        """The columns that some file has itself."""
        return frozenset(self._in_files)

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of all columns, or of some in this order; one that no file has is an error."""
        names = list(self._known) if columns is None else list(dict.fromkeys(columns))
        self._require_known(names)
        kinds = {name: self._known[name] for name in names}
        return pa.schema(
            [
                (name, pa.string() if pa.types.is_null(known.kind) and not known.strong else known.kind)
                for name, known in kinds.items()
            ]
        )

    def _require_castable(self, part: str, name: str, value: Partition) -> None:
        declared = self.declared.get(name)
        try:
            if declared is not None:
                pa.scalar(value if value is None else str(value)).cast(declared)
        except pa.ArrowException as exc:
            raise Damaged(
                f"the folder of {part} says {name}={value}, which cannot be read as {declared}, as types says. Correct "
                f"types, or leave the folder out (pattern)."
            ) from exc

    def _stated(self, part: str, strong: bool, column: pa.Field) -> pa.DataType:
        kind, declared = plain(column.type), self.declared.get(column.name)
        if declared is None:
            return kind
        try:
            if strong:
                pa.array([], kind).cast(declared)
        except pa.ArrowException as exc:
            raise Damaged(
                f"column {column.name!r} is {kind} in {part} and cannot be read as {declared}, which types says. "
                f"Correct types, or leave the file out (pattern)."
            ) from exc
        return declared

    def _require_known(self, names: Sequence[str]) -> None:
        missing = [name for name in names if name not in self._known]
        if not missing:
            return
        hint = did_you_mean(nearest(missing[0], self._known))
        raise SourceError(
            f"no file has the column {', '.join(map(repr, missing))}; the columns are: "
            f"{', '.join(self._known) or 'none'}.{hint}"
        )


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values alone: categories, run lengths and views are how they are stored."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def leaves(kind: pa.DataType) -> int:
    """How many columns of plain values a type is kept in."""
    if pa.types.is_struct(kind):
        return sum(leaves(field.type) for field in kind)
    return leaves(kind.value_type) if pa.types.is_list(kind) else 1


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the columns of ``schema``; ValueError where a value cannot be had in its type."""
    if batch.schema.equals(schema):
        return batch if batch.schema.metadata is None else batch.replace_schema_metadata(None)
    arrays = []
    for column in schema:
        index = batch.schema.get_field_index(column.name)
        if index < 0:
            arrays.append(pa.nulls(batch.num_rows, column.type))
            continue
        found = batch.column(index)
        try:
            arrays.append(found if found.type == column.type else found.cast(column.type))
        except pa.ArrowException as exc:
            raise ValueError(
                f"column {column.name!r} is {found.type} and cannot be read as {column.type}: {exc}"
            ) from exc
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.nulls(batch.num_rows, pa.struct([])))
    return pa.record_batch(arrays, schema=schema)


def _merged(name: str, a: _Known, b: _Known) -> _Known:
    if a.kind == b.kind or (a.strong != b.strong and _alike(a.kind, b.kind)):
        return a if a.strong else b
    try:
        schemas = [pa.schema([(name, a.kind)]), pa.schema([(name, b.kind)])]
        both = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException as exc:
        if not (a.strong or b.strong or _nested(a.kind) or _nested(b.kind)):
            return _Known(pa.string(), False, a.part)
        raise Conflicting(
            f"column {name!r} is {a.kind} in {a.part} and {b.kind} in {b.part}: one round cannot hold both. Write it "
            f"the same way everywhere, say types: {{{name}: string}} (or float64), or leave one of the files out "
            f"(pattern)."
        ) from exc
    return _Known(both, a.strong, a.part)


def _alike(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether text of the one type may be meant as the other: a list or an object is never a single value."""
    return _nested(a) == _nested(b) or pa.types.is_null(a) or pa.types.is_null(b)


def _nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))
