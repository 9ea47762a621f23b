"""JSON lines: one object per line; types are inferred from the head of the file, once, so that they cannot flip.

Arrow's parser does the work. What it cannot read but is well meant (``NaN`` as Python writes it, a number where the
column is text) goes through Python's, line by line. A column with different kinds of values is text: their JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.json as pajson

from opmon.sources._damage import Damaged
from opmon.sources._flaws import no_object, no_text
from opmon.sources._folder import Entry
from opmon.sources._halves import with_whole_signs
from opmon.sources._lines import BOM, Block, Lines, read_range
from opmon.sources._schema import MOST_COLUMNS, leaves
from opmon.types import Json

FEW_COLUMNS, MOST_EMPTY = 5000, 100
"""Of more columns than this, one cell in a hundred must be filled: else the keys are no names of columns."""
_CELLS = 1 << 22


@dataclass(frozen=True, slots=True)
class Jsonl:
    """One JSON object per line."""

    max_row_bytes: int

    def lines(self, entry: Entry) -> Lines:
        return Lines(None, self.max_row_bytes)

    def header(self, entry: Entry) -> bytes:
        """The byte-order mark, where there is one."""
        return BOM if read_range(entry, 0, len(BOM)) == BOM else b""

    def flaws(self, block: Block) -> dict[int, str]:
        return no_text(block) if block.too_long else no_text(block) | no_object(block)

    def infer(self, entry: Entry, data: bytes, mixed: bool) -> pa.Schema:
        """The types of the rows in ``data``."""
        types: dict[str, pa.DataType] = {}
        count = keys = 0
        for rows in _portions(data):
            for name, kind in _types(rows, mixed).items():
                types[name] = _either(types[name], kind, mixed) if name in types else kind
            count, keys = count + rows.count(b"\n"), keys + rows.count(b":")
            width = sum(map(leaves, types.values()))
            if width > MOST_COLUMNS or (width > FEW_COLUMNS and width * count > MOST_EMPTY * keys):
                raise Damaged(
                    f"{entry.part} has {width:,} different keys in its first {max(1, count):,} rows: keys must name "
                    f"columns. What changes from row to row belongs into a value."
                )
        return pa.schema(list(types.items()))

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


def _portions(data: bytes) -> Iterator[bytes]:
    """Some rows at a time, so few that a table of them stays small though each of them had keys of its own."""
    portion: list[bytes] = []
    keys = 0
    for line in data.split(b"\n"):
        portion.append(line)
        keys += line.count(b":")
        if len(portion) * keys > _CELLS:
            yield b"\n".join(portion)
            portion, keys = [], 0
    yield b"\n".join(portion)


def _types(rows: bytes, mixed: bool) -> dict[str, pa.DataType]:
    if not rows.strip():
        return {}
    try:
        return {field.name: _simple(field.type) for field in _read(rows, None).schema}
    except pa.ArrowException:
        if not mixed:
            raise
        objects = _objects(rows)
        names = list(dict.fromkeys(name for row in objects for name in row))
        return {name: _simple(_kind([row.get(name) for row in objects])) for name in names}


def _either(a: pa.DataType, b: pa.DataType, mixed: bool) -> pa.DataType:
    """The type of a column that is one here and the other there; text, where that may be, if no other holds both."""
    if a == b:
        return a
    try:
        schemas = [pa.schema([("x", a)]), pa.schema([("x", b)])]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        if not mixed:
            raise
        return pa.string()


def _read(data: bytes, schema: pa.Schema | None) -> pa.Table:
    return pajson.read_json(
        pa.BufferReader(data),
        read_options=pajson.ReadOptions(block_size=len(data) + 1, use_threads=False),  # blocks are read side by side
        parse_options=pajson.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    )


def _objects(data: bytes) -> list[Mapping[str, Json]]:
    rows: list[Mapping[str, Json]] = []
    for line in data.split(b"\n"):
        if line.strip():
            row = _decoded(line)
            if not isinstance(row, dict):
                raise ValueError("a line must be one JSON object")
            rows.append(row)
    return rows


def _decoded(line: bytes) -> Json:
    """What ``json.loads`` makes of it, which looks for the encoding of each line."""
    if line[:1] == b"{" and line[1:2] != b"\0":
        text = line.decode("utf-8", "surrogatepass")
        return with_whole_signs(_DECODE(text), text)
    found: Json = json.loads(line)
    return found


_DECODE = json.JSONDecoder().decode


def _column(rows: list[Mapping[str, Json]], field: pa.Field) -> pa.Array:
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


def _require_whole(array: pa.Array, values: Sequence[Json]) -> None:
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


def _kind(values: Sequence[Json]) -> pa.DataType:
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
