"""What is known of a log before anything is configured: its first rows, and how much of it there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from opmon.abc import Source
from opmon.checks.sample import first_rows
from opmon.errors import InputError, OpmonError, SourceError
from opmon.redaction import shown_address
from opmon.scoring.inputs.classes import is_said
from opmon.scoring.inputs.columns import decoded
from opmon.setup.choice import Choice
from opmon.setup.requests import layout_of
from opmon.setup.source import Keys, source_of
from opmon.sources._damage import WAY_ON
from opmon.sources.nested import Nested, as_json
from opmon.sources.recorder import is_recorded
from opmon.types import Json, Slice

_LOOKED_AT = 2000
_OF_RECORDER = ("prediction", "scores", "model_version")
_PARSED = 50
_COUNTED = 1_000_000
"""So many rows are counted at most."""
_FILES = 100
"""Of a log in more files than that, no more are opened than it takes to see what is in them."""


@dataclass(frozen=True)
class Log:
    """The first rows of a log. ``total`` is how many it has, as far as they were counted."""

    rows: pa.Table
    total: int
    more: bool = False
    """Whether it has more than that."""
    layout: str | None = None
    """The layout, if it is a log of requests to a model server."""
    recorded: bool = False
    """Whether ``opmon.Recorder`` wrote it."""
    damage: str | None = None
    """What of it cannot be read, where something cannot."""

    @property
    def source(self) -> tuple[Choice, ...]:
        """The keys of the source that reads it, beside its path."""
        if self.recorded:
            return (Choice(("source", "type"), "recorder", "opmon.Recorder wrote the log: what it dropped is told"),)
        why = f"such files are listed by opmon inputs, and the rest is read: {self.damage}"
        aside = () if self.damage is None else (Choice(("source", "broken"), "quarantine", why),)
        if self.layout is None:
            return aside
        why = "the log holds whole requests and responses: each row that a request asks about is an input"
        return (Choice(("source", "type"), "requests", why), Choice(("source", "layout"), self.layout), *aside)

    def column(self, name: str) -> pa.Array:
        """The values of a column, in which NaN and infinity are none; one that holds nothing at all is text."""
        column = decoded(self.rows[name].combine_chunks())
        if pa.types.is_floating(column.type):
            numbers = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
            return pc.if_else(pc.is_finite(numbers), numbers, None)
        return column.cast(pa.string()) if pa.types.is_null(column.type) else column

    def different(self, name: str) -> int:
        """How many different values a column has; lists and the like count as all different."""
        column = self.column(name)
        if pa.types.is_nested(column.type):
            return len(column)
        return int(pc.count_distinct(column, mode="only_valid").as_py())

    def says(self, name: str) -> bool:
        """Whether a column holds anything: blank text and NaN are nothing."""
        column = self.column(name)
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            return bool(column.null_count < len(column))
        return bool(is_said(name, column).any())

    def is_text(self, name: str) -> bool:
        kind = self.column(name).type
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    def is_whole(self, name: str) -> bool:
        return bool(pa.types.is_integer(self.column(name).type))

    def is_number(self, name: str) -> bool:
        """Whether it holds numbers, truth values too."""
        kind = self.column(name).type
        return bool(
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)
        )

    def is_fraction(self, name: str) -> bool:
        """Whether it holds numbers of which not all are whole."""
        column = self.column(name)
        if not pa.types.is_floating(column.type):
            return False
        known = pc.drop_null(column)
        return bool(pc.any(pc.not_equal(known, pc.floor(known))).as_py())


def look(keys: Keys, folder: Path) -> Log:
    """Read the first rows of the source with these keys; an error where there is none."""
    shown = shown_address(str(keys.get("path") or keys.get("table") or keys.get("experiment") or dict(keys)))
    try:
        return _look(keys, folder, None)
    except SourceError as exc:
        damage = str(exc).removesuffix(WAY_ON).rstrip()
    except OpmonError as exc:
        raise InputError(f"--source {shown} cannot be read: {exc}") from exc
    try:
        if not _is_files(keys):
            raise SourceError(damage)
        return _look({**keys, "broken": "quarantine"}, folder, damage)
    except OpmonError as exc:
        raise InputError(f"--source {shown} cannot be read: {damage}") from exc


def _is_files(keys: Keys) -> bool:
    return keys.get("type", "files") == "files"


def _look(keys: Keys, folder: Path, damage: str | None) -> Log:
    source = source_of(keys, folder)
    slices, more = _first(source)
    if not slices and _is_files(keys):
        raise InputError("there are no rows: name a file, a folder or a glob of Parquet, CSV or JSONL files")
    if not slices:
        raise InputError("there are no rows yet, or none that have settled: try again when production has logged some")
    rows = first_rows(source, slices, _LOOKED_AT)
    total = sum(piece.rows for piece in slices)
    if not _is_files(keys):
        return replace(_with_inner(source, slices, rows, total), more=more)
    if all(is_recorded(piece.part) for piece in slices):
        kept = [name for name in rows.column_names if name not in _OF_RECORDER or rows[name].null_count < rows.num_rows]
        return Log(rows.select(kept).drop_columns("inclusion"), total, more, recorded=True)
    layout = layout_of(rows)
    if layout is not None:
        return _of_requests(keys, folder, layout, damage)
    return replace(_with_inner(source, slices, rows, total, damage), more=more)


def _first(source: Source) -> tuple[list[Slice], bool]:
    """The slices of the log as far as they are counted, and whether it goes on: of many small files some are enough."""
    some = source.pending({}, _LOOKED_AT)
    if sum(piece.rows for piece in some) < _LOOKED_AT:
        return some, False
    return (some, True) if len(some) > _FILES else _counted(source)


def _counted(source: Source) -> tuple[list[Slice], bool]:
    slices = source.pending({}, _COUNTED)
    return slices, sum(piece.rows for piece in slices) >= _COUNTED


def _with_inner(source: Source, slices: Sequence[Slice], rows: pa.Table, total: int, damage: str | None = None) -> Log:
    """The rows with what lies inside their columns."""
    paths, roots = _inside(rows)
    if paths:
        rows = first_rows(Nested(source, paths), slices, _LOOKED_AT).drop_columns(roots)
    return Log(rows, total, damage=damage)


def _of_requests(keys: Keys, folder: Path, layout: str, damage: str | None) -> Log:
    """The inputs that requests asked about, without columns that hold nothing, and answers that others tell."""
    source = source_of({**keys, "type": "requests", "layout": layout}, folder)
    slices, more = _first(source)
    rows = first_rows(source, slices, _LOOKED_AT)
    empty = [name for name in rows.column_names if rows[name].null_count == rows.num_rows]
    told = {"prediction", "scores"} - set(empty)
    kept = [name for name in rows.column_names if name not in empty and not (name == "response" and told)]
    if not kept:
        raise InputError(f"{keys['path']} holds requests that cannot be understood; see opmon explain source requests")
    return Log(rows.select(kept), sum(piece.rows for piece in slices), more, layout, damage=damage)


def _inside(rows: pa.Table) -> tuple[tuple[str, ...], list[str]]:
    """The fields inside of columns, such as ``features.age``; and the columns of text that hold them as JSON."""
    paths: list[str] = []
    roots = []
    for field in rows.schema:
        kind = field.type
        if pa.types.is_struct(kind):
            paths += _fields(field.name, kind)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            keys = _keys(rows[field.name].slice(0, _PARSED).to_pylist())
            paths += [f"{field.name}.{key}" for key in keys]
            roots += [field.name] if keys else []
    return tuple(paths), roots


def _fields(name: str, kind: pa.DataType) -> list[str]:
    """The fields of a struct, and of structs in it."""
    if not pa.types.is_struct(kind):
        return [name]
    return [path for field in kind for path in _fields(f"{name}.{field.name}", field.type)]


def _keys(texts: Sequence[str | None]) -> list[str]:
    """The paths in JSON objects, such as ``customer.age``; none where a text is no such object."""
    found: dict[str, None] = {}
    for text in texts:
        if text is None:
            continue
        told = as_json(text) if text.lstrip().startswith("{") else None
        if not isinstance(told, dict):
            return []
        found.update(dict.fromkeys(_paths(told)))
    return [path for path in found if not any(other.startswith(f"{path}.") for other in found)]


def _paths(told: Mapping[str, Json]) -> Iterator[str]:
    for key, value in told.items():
        if isinstance(value, dict) and value:
            yield from (f"{key}.{path}" for path in _paths(value))
        else:
            yield key
