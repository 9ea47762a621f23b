"""What all tables have in common: moments, keys, and how constraints are called."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

Row: TypeAlias = sa.Row[tuple[object, ...]]
"""A row by the names of its columns."""
Query: TypeAlias = sa.Select[tuple[object, ...]]
"""A query for such rows."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment with its time zone; stored in UTC, so that SQLite and PostgreSQL give back the same."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite numbers rows only in a column that is exactly INTEGER."""


_Name = sa.String(300).with_variant(sa.String(50), "sqlite")
"""SQLite holds text of any length in a column, and cannot change its type while other tables refer to it."""


def quantity_columns() -> tuple[sa.Column[Any], ...]:
    """The columns that say what was estimated, beside its values: see :func:`opmon.store.revisions.quantity_of`."""
    return (
        sa.Column("quantity", _Name, nullable=False),
        sa.Column("unit", sa.String(50), nullable=False, server_default=""),
        sa.Column("meaning", sa.JSON(none_as_null=True)),  # what else its quantity is, where name and unit do not tell
    )


def round_id() -> sa.Column[int]:
    """The column that names the round a row belongs to."""
    return sa.Column("round_id", Key, sa.ForeignKey("rounds.id"), nullable=False)
