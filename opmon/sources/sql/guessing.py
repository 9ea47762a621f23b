"""The cursor of a table that nobody has said anything of: the column that tells when its rows came."""

from __future__ import annotations

import re
from datetime import timedelta

import pyarrow as pa

from opmon.errors import InputError
from opmon.sources.sql import relation as relations
from opmon.sources.sql.connecting import session
from opmon.sources.sql.relation import Column, Relation

_PATIENCE = timedelta(seconds=30)
_TIMES = (
    re.compile(r"(inserted|created|logged|received|ingested|recorded)(_?(at|on|time|date|ts))?"),
    re.compile(r"(.*_)?(timestamp|ts|time|at)"),
)
"""Names of such columns, best first."""


def cursor_of(address: str, table: str) -> list[str]:
    """The columns in whose order rows of the table are read: a time, or else the key, where that is a whole number."""
    with session(address, f"table {table}", _PATIENCE) as opened:
        relation = relations.table(opened, table, {})
        is_sqlite = opened.dialect == "sqlite"
    times = [column for column in relation.columns.values() if _may_be_time(column, is_sqlite)]
    if times:
        best = min(times, key=_rank).name
        return [best, *(name for name in relation.identity if name != best)]
    if _is_numbered(relation):
        return list(relation.identity)
    raise InputError(
        f"table {table} has no column with a time, and no key of one whole number: say in which order its rows came, "
        f"such as --source '{{type: sql, database: …, table: {table}, cursor: [created_at, id]}}'"
    )


def _may_be_time(column: Column, is_sqlite: bool) -> bool:
    if pa.types.is_timestamp(column.kind):
        return True
    return is_sqlite and pa.types.is_string(column.kind) and _rank(column)[0] < len(_TIMES)  # SQLite has no times


def _rank(column: Column) -> tuple[int, bool]:
    name = column.name.lower()
    return next((place for place, form in enumerate(_TIMES) if form.fullmatch(name)), len(_TIMES)), column.nullable


def _is_numbered(relation: Relation) -> bool:
    return len(relation.identity) == 1 and pa.types.is_integer(relation.columns[relation.identity[0]].kind)
