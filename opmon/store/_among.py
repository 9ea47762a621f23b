"""Rows by many keys at once, in one parameter: a list of ten thousand placeholders takes longer than its query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection

AT_ONCE = 20_000
"""So many keys are looked for in one query."""
Item = TypeVar("Item")


def among(
    connection: Connection, column: sa.Column[int] | sa.Column[str], keys: Sequence[object]
) -> sa.ColumnElement[bool]:
    """The condition that a column holds one of the keys."""
    if len(keys) == 1:
        return column == keys[0]
    if connection.dialect.name == "sqlite":
        return column.in_(sa.select(sa.func.json_each(json.dumps(list(keys))).table_valued("value").c.value))
    if isinstance(column.type, sa.Integer):
        numbers = sa.literal(f"{{{','.join(map(str, keys))}}}", _Numbers())
        # as a query of their own: the planner looks at each of twenty thousand that stand in the condition itself
        listed_numbers = sa.select(sa.func.unnest(numbers)).scalar_subquery()
        return column == sa.any_(sa.func.array(listed_numbers))
    return column == sa.any_(sa.literal(list(keys), ARRAY(column.type)))


class _Numbers(sa.types.UserDefinedType[str]):
    """A list of whole numbers in one text, as the server reads it: the driver takes six times as long to write one.

    It is none of SQLAlchemy's arrays: the dialect puts its own in their place, which hands the driver a list.
    """

    cache_ok = True
    render_bind_cast = True

    def get_col_spec(self, **_: object) -> str:
        return "BIGINT[]"


def listed(connection: Connection, keys: Sequence[str]) -> sa.TableValuedAlias:
    """The keys as a table with the column ``value``, for a query that looks something up for each of them."""
    if connection.dialect.name == "sqlite":
        return sa.func.json_each(json.dumps(list(keys))).table_valued("value")
    return sa.func.unnest(sa.literal(list(keys), ARRAY(sa.String()))).table_valued("value").render_derived()


def portions(items: Sequence[Item], size: int | None = None) -> Iterator[Sequence[Item]]:
    """The items, so many at a time."""
    size = size or AT_ONCE
    return (items[start : start + size] for start in range(0, len(items), size))
