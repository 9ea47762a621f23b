"""Columns that stand in the folders' names, as Hive, Spark and Athena write them: ``date=2026-03-01/country=DE/``."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from urllib.parse import unquote

import pyarrow as pa

_FOLDER = re.compile(r"([^=]+)=(.*)")
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"

Partition = str | int | None


def partitions_of(part: str) -> Mapping[str, Partition]:
    """What the folders of a file say of all its rows.

    >>> partitions_of("year=2026/month=03/country=A%20B/part-1.parquet")
    {'year': 2026, 'month': '03', 'country': 'A B'}
    """
    return _of_folder(part.rpartition("/")[0])


@functools.lru_cache(maxsize=4096)
def _of_folder(folder: str) -> Mapping[str, Partition]:
    found = {}
    for piece in folder.split("/"):
        match = _FOLDER.fullmatch(piece)
        if match is not None:
            value = unquote(match[2])
            found[unquote(match[1])] = None if value == _NOTHING else int(value) if _WHOLE.fullmatch(value) else value
    return found


def schema_of(part: str) -> pa.Schema:
    """The columns that a file's folders name, with their types."""
    kinds = {str: pa.string(), int: pa.int64(), type(None): pa.null()}
    return pa.schema([(name, kinds[type(value)]) for name, value in partitions_of(part).items()])


def placed(rows: pa.RecordBatch, part: str, names: frozenset[str]) -> pa.RecordBatch:
    """The rows with what their folders say in the columns ``names``, where the file itself says nothing."""
    for name, value in partitions_of(part).items() if names else ():
        index = rows.schema.get_field_index(name)
        if name not in names or index < 0 or value is None or rows.column(index).null_count < rows.num_rows:
            continue
        kind = rows.schema.field(index).type
        try:
            constant = pa.scalar(str(value) if pa.types.is_string(kind) else value).cast(kind)
        except pa.ArrowException:  # other files say the column is something else
            continue
        rows = rows.set_column(index, rows.schema.field(index), pa.repeat(constant, rows.num_rows))
    return rows
