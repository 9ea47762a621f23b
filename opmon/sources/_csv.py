"""CSV: a header line, then rows; types are inferred from the head of the file, once, so that they cannot flip.

Numbers, and ``true``/``false``, become numbers and truth values; everything else is text, dates and times included.
A column with a code such as ``007`` in the head is text. Empty cells are null.
"""

from __future__ import annotations

import csv
import functools
import re
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from opmon.errors import InputError
from opmon.sources._damage import Damaged
from opmon.sources._flaws import no_text
from opmon.sources._folder import Entry
from opmon.sources._lines import BOM, Block, Lines, is_packed
from opmon.sources._schema import MOST_COLUMNS, conform

_DELIMITERS = (",", "\t", ";", "|")
_HEADER_BYTES = 1 << 16
_SMALL_BYTES = 1 << 18
_CODE = r"^[+-]?0[0-9]+$"
_PERHAPS_CODE = re.compile(rb"(?<![0-9.])0[0-9]")


@dataclass(frozen=True, slots=True)
class Header:
    names: list[str]
    delimiter: str
    text: bytes
    """The bytes before the first row."""


@dataclass(frozen=True, slots=True)
class Csv:
    """CSV with a header; ``delimiter`` None finds it in the header: comma, tab, semicolon or bar."""

    delimiter: str | None
    max_row_bytes: int

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter.encode()) != 1 or self.delimiter in '"\r\n'):
            raise InputError(f"delimiter must be one character, such as ',' or ';'; got {self.delimiter!r}")

    def lines(self, entry: Entry) -> Lines:
        header = self._header(entry)
        return Lines((header.delimiter if header else ",").encode(), self.max_row_bytes)

    def header(self, entry: Entry) -> bytes | None:
        """The bytes before the first row."""
        header = self._header(entry)
        return header.text if header else None

    def flaws(self, block: Block) -> dict[int, str]:
        return no_text(block)

    def infer(self, entry: Entry, data: bytes, mixed: bool) -> pa.Schema:
        """The types of the rows in ``data``."""
        table = self._read(entry, data, pacsv.ConvertOptions(strings_can_be_null=True, null_values=_NULLS))
        types = {field.name: _simple(field.type) for field in table.schema}
        numbers = [name for name, kind in types.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
        if numbers and _PERHAPS_CODE.search(data):
            codes = self._where(entry, data, numbers, _CODE)
            types |= dict.fromkeys(codes, pa.string())
        truths = [name for name, kind in types.items() if pa.types.is_boolean(kind)]
        if truths and not mixed and self._where(entry, data, truths, "[01]"):
            raise ValueError("numbers and truth values in one column")
        return pa.schema(list(types.items()))

    def _where(self, entry: Entry, data: bytes, names: list[str], pattern: str) -> list[str]:
        """The columns that hold a cell which fits the pattern."""
        as_text = pacsv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, pa.string()))
        table = self._read(entry, data, as_text)
        return [name for name in names if pc.any(pc.match_substring_regex(table[name], pattern)).as_py()]

    def parse(self, entry: Entry, data: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """The rows in ``data`` as ``schema`` has them."""
        options = pacsv.ConvertOptions(
            column_types=schema,
            include_columns=schema.names,
            include_missing_columns=True,
            strings_can_be_null=False,
            null_values=_NULLS,
        )
        table = self._read(entry, data, options).combine_chunks()
        columns = [_without_empty_text(column.combine_chunks()) for column in table.columns]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.nulls(table.num_rows, pa.struct([])))
        return conform(pa.record_batch(columns, schema=table.schema), schema)

    def _read(self, entry: Entry, data: bytes, convert: pacsv.ConvertOptions) -> pa.Table:
        header = self._header(entry)
        assert header is not None
        return pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(
                column_names=header.names, block_size=len(data) + 1, use_threads=len(data) > _SMALL_BYTES
            ),
            parse_options=pacsv.ParseOptions(delimiter=header.delimiter, newlines_in_values=b'"' in data),
            convert_options=convert,
        )

    def _header(self, entry: Entry) -> Header | None:
        """The first line that is not blank; None while it has no end."""
        text = _first_line(entry, self.delimiter, self.max_row_bytes)
        if text is None:
            return None
        try:
            return _parsed(text, self.delimiter)
        except ValueError as exc:
            raise Damaged(f"{entry.part}: {exc}") from exc


_NULLS = ["", "NULL", "null", "NA", "N/A", "n/a", "#N/A", "<NA>", "None"]


def _simple(kind: pa.DataType) -> pa.DataType:
    """Numbers, truth values and text; dates and times stay the text they are."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    return kind if any(test(kind) for test in tests) else pa.string()


def _without_empty_text(column: pa.Array) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column
    empty = pc.equal(pc.binary_length(column), 0)
    if not pc.any(empty).as_py():
        return column
    return pc.if_else(empty, pa.scalar(None, pa.string()), column)


def _first_line(entry: Entry, delimiter: str | None, max_row_bytes: int) -> bytes | None:
    """The bytes to the end of the first line that is not blank."""
    if entry.content is not None and not is_packed(entry):
        line = entry.content[: entry.content.find(b"\n") + 1]
        if line.strip() and b'"' not in line:
            return line
    return _first_row(entry, delimiter, max_row_bytes)


@functools.lru_cache(maxsize=16)
def _first_row(entry: Entry, delimiter: str | None, max_row_bytes: int) -> bytes | None:
    lines = Lines((delimiter or ",").encode(), max_row_bytes, _HEADER_BYTES)
    block = next(lines.blocks(entry, 0, None, take_tail=False), None)
    return None if block is None or not len(block.ends) else block.data[: int(block.ends[0])]


@functools.lru_cache(maxsize=64)
def _parsed(text: bytes, delimiter: str | None) -> Header:
    line = text.lstrip(b"\r\n")
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("this is UTF-16; opmon reads CSV in UTF-8: write it again in UTF-8")
    try:
        plain = line.removeprefix(BOM).decode().rstrip("\r\n")
    except UnicodeDecodeError as exc:
        raise ValueError(f"the header is not UTF-8: {exc}. Write the file again in UTF-8.") from exc
    delimiter = delimiter or max(_DELIMITERS, key=plain.count)
    try:
        names = [name or f"unnamed_{i}" for i, name in enumerate(next(csv.reader([plain], delimiter=delimiter)))]
    except csv.Error as exc:  # a name of more than 131,072 characters
        raise ValueError(f"the header is no line of column names: {exc}") from exc
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice or "\x00" in plain or not line:
        wrong = f"names {twice[0]!r} more than once" if twice else "holds a NUL byte, or is too long: this is not text"
        raise ValueError(f"the header {wrong}. The first line of a CSV file names each column once.")
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"the header names {len(names):,} columns; {MOST_COLUMNS:,} are the most")
    return Header(names, delimiter, text)
