"""Copying all rows of one database into another of the same schema, whichever kind each is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema.base import UtcDateTime

MARK = "alembic_version"
"""The table that says at which schema a database is; Alembic writes it."""
_MANY, _LARGE = 1000, 20
"""Rows that are held in memory at once; fewer of tables that hold bytes."""


@dataclass(frozen=True, slots=True)
class Copied:
    """How many rows of each table were copied."""

    rows: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def tables_of(connection: Connection) -> list[sa.Table]:
    """The tables that are there, but for Alembic's own; each behind those that its rows refer to."""
    found = sa.MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != MARK]


def copy(source: Connection, target: Connection) -> Copied:
    """Copy the rows of all tables that the target has; they must be empty there, and both at one schema."""
    copied = {}
    for table in tables_of(target):
        plain = sa.table(table.name, *(sa.column(column.name, _kind(column)) for column in table.columns))
        size = _LARGE if any(isinstance(column.type, sa.LargeBinary) for column in table.columns) else _MANY
        copied[table.name] = 0
        for rows in _in_portions(source, plain, [column.name for column in table.primary_key], size):
            target.execute(plain.insert(), rows)
            copied[table.name] += len(rows)
        if target.dialect.name != "sqlite":
            _number_on(target, table)
    return Copied(copied)


def _in_portions(
    source: Connection, table: sa.TableClause, order: Sequence[str], size: int
) -> Iterator[list[dict[str, Any]]]:
    query = sa.select(table).order_by(*(table.c[name] for name in order))
    with source.execution_options(yield_per=size).execute(query) as result:
        for rows in result.partitions():
            yield [dict(row._mapping) for row in rows]


def _kind(column: sa.Column[Any]) -> sa.types.TypeEngine[Any]:
    """The type that reads from either database what the other takes."""
    match column.type:
        case sa.DateTime():
            return UtcDateTime()
        case sa.JSON():
            return sa.JSON(none_as_null=True)
        case sa.Boolean():
            return sa.Boolean()
        case sa.LargeBinary():
            return sa.LargeBinary()
        case sa.Float():
            return sa.Float()
        case sa.Integer():
            return sa.BigInteger()
        case _:
            return sa.Text()


def _number_on(connection: Connection, table: sa.Table) -> None:
    """Let PostgreSQL number new rows behind those that were copied."""
    for column in table.primary_key:
        if isinstance(column.type, sa.Integer) and column.server_default is not None:
            last = sa.select(sa.func.coalesce(sa.func.max(column), 0) + 1).scalar_subquery()
            sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
            connection.execute(sa.select(sa.func.setval(sequence, last, False)))
