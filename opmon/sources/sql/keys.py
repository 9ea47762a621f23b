"""Where a row stands: its values in the columns of the cursor, compared as the database compares them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.types import NULLTYPE

from opmon.errors import SourceError
from opmon.sources.sql.behind import place
from opmon.sources.sql.relation import Column, Relation

BEGIN = "begin"
_TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\d([ T])\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00|)")


@dataclass(frozen=True)
class Position:
    """Between two rows: after the one with these values, or (``inclusive``) before all from these values on."""

    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    inclusive: bool = False

    def __str__(self) -> str:
        if not self.names:
            return BEGIN
        told = dict(zip(self.names, map(_written, self.values), strict=True))
        return f"{'from' if self.inclusive else 'after'} {json.dumps(told)}"


@dataclass(frozen=True)
class Keys:
    """The columns that rows are ordered by. The first is a time or a whole number; together they tell rows apart,
    or else rows with equal values stay together."""

    columns: tuple[Column, ...]
    all_of_key: bool
    dialect: str

    @classmethod
    def of(cls, relation: Relation, cursor: Sequence[str], dialect: str) -> Keys:
        """The cursor's columns, and behind them those of the primary key."""
        named = list(dict.fromkeys([*cursor, *(name for name in relation.identity if name in relation.columns)]))
        columns = tuple(relation.column(name, "cursor column") for name in named)
        first = columns[0]
        if pa.types.is_date(first.kind):
            raise SourceError(
                f"{relation.part}: the cursor {first.name!r} holds days, and rows of today may still come. Use a "
                f"column with times, or a whole number that grows."
            )
        text_time = dialect == "sqlite" and pa.types.is_string(first.kind)
        if not (pa.types.is_timestamp(first.kind) or pa.types.is_integer(first.kind) or text_time):
            raise SourceError(
                f"{relation.part}: the cursor {first.name!r} is {first.kind}; it must be a time or a whole number that "
                f"grows with every row, such as created_at or id. (A query can make one: cast(... as timestamp).)"
            )
        return cls(columns, bool(relation.identity) and set(relation.identity) <= set(named), dialect)

    @property
    def first(self) -> Column:
        return self.columns[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def is_time(self) -> bool:
        return not pa.types.is_integer(self.first.kind)

    @property
    def is_text(self) -> bool:
        """Whether times are kept as text, as SQLite does."""
        return self.is_time and self.dialect == "sqlite"

    @property
    def raw(self) -> list[sa.ColumnElement[Any]]:
        return [column.raw for column in self.columns]

    def order(self, relation: Relation, descending: bool = False) -> list[sa.ColumnElement[Any]]:
        """The order of rows; where the keys may be alike, by everything else too, so that it is always the same."""
        if descending:
            return [column.raw.desc() for column in self.columns]
        rest = () if self.all_of_key else relation.columns.values()
        return [*self.raw, *(column.expression for column in rest if column.name not in self.names)]

    def known(self) -> sa.ColumnElement[bool]:
        """Rows that have a place in the order."""
        return sa.and_(sa.true(), *(column.raw.is_not(None) for column in self.columns if column.nullable))

    def unknown(self) -> sa.ColumnElement[bool] | None:
        """Rows that have none; None where there can be no such row."""
        loose = [column.raw.is_(None) for column in self.columns if column.nullable]
        return sa.or_(*loose) if loose else None

    def after(self, position: Position) -> sa.ColumnElement[bool]:
        if not position.names:
            return sa.true()
        return self._beyond(position, above=True, equal=position.inclusive)

    def until(self, position: Position) -> sa.ColumnElement[bool]:
        return self._beyond(position, above=False, equal=True)

    def between(self, start: Position, stop: Position) -> sa.ColumnElement[bool]:
        return sa.and_(self.after(start), self.until(stop), self.known())

    def parse(self, text: str | None, part: str) -> Position:
        """The position that was written as ``text``."""
        text = BEGIN if text is None else place(text)
        if text == BEGIN:
            return Position()
        kind, _, rest = text.partition(" ")
        try:
            told = json.loads(rest)
            names = tuple(told)
            if kind not in ("from", "after") or names != self.names[: len(names)]:
                raise ValueError
            values = [self._read(column, told[column.name], kind == "from") for column in self.columns[: len(names)]]
        except (ValueError, TypeError, AttributeError):
            raise SourceError(
                f"the position {text!r} of {part} does not fit the cursor {', '.join(self.names)}. Was the cursor, the "
                f"table's key or the monitor's source changed? Change it back, or give the monitor a new name."
            ) from None
        return Position(names, tuple(values), kind == "from")

    def at(self, row: Sequence[Any]) -> Position:
        """The position after a row, from its values of the keys."""
        for column, value in zip(self.columns, row, strict=True):
            if pa.types.is_integer(column.kind) and not isinstance(value, int | Decimal):
                raise SourceError(f"the cursor's column {column.name!r} holds {value!r}, which is no whole number")
        return Position(self.names, tuple(row))

    def bound(self, moment: datetime, like: str | None = None) -> Any:
        """A moment as the first column holds it; ``like``, where times are text, is one of them."""
        if not self.is_text:
            has_zone = getattr(self.first.kind, "tz", None) is not None
            return moment if has_zone else moment.astimezone(UTC).replace(tzinfo=None)
        separator = "T" if like is not None and like[10:11] == "T" else " "
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(separator)

    def moment(self, value: Any) -> datetime | None:
        """When a row was made, from its first key; None where that is a number."""
        if not self.is_time:
            return None
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)

    def _beyond(self, position: Position, above: bool, equal: bool) -> sa.ColumnElement[bool]:
        """Rows on one side of a position: (a, b) > (x, y) written out, as not every database can compare rows."""
        condition: sa.ColumnElement[bool] = sa.true() if equal else sa.false()
        for column, value in reversed(list(zip(self.raw, position.values, strict=False))):
            compared, given = self._compared(column, value)
            strict = compared > given if above else compared < given
            condition = sa.or_(strict, sa.and_(compared == given, condition))
        first, given = self._compared(self.first.raw, position.values[0])
        bound = first >= given if above else first <= given
        return sa.and_(bound, condition)  # the bound alone is what an index on the first column needs

    def _compared(self, column: sa.ColumnElement[Any], value: Any) -> tuple[sa.ColumnElement[Any], Any]:
        """What of a row is compared with which value."""
        if isinstance(value, datetime):
            if self.is_text:  # a moment of our own, not a row's text: whatever stands before the hour
                return sa.func.replace(column, "T", " "), self.bound(value)
            value = self.bound(value) if value.tzinfo is not None else value
        return column, sa.literal(value, NULLTYPE)

    def _read(self, column: Column, told: Any, is_moment: bool) -> Any:
        if is_moment or (pa.types.is_timestamp(column.kind) and self.dialect != "sqlite"):
            return datetime.fromisoformat(told)
        if isinstance(told, bool) or not isinstance(told, int | str):
            raise TypeError
        if isinstance(told, str) and pa.types.is_integer(column.kind):
            raise TypeError
        return told


def text_shape(value: Any) -> tuple[str, str]:
    """How a time is written as text: what stands before the hour, and the zone behind it; ValueError if it is none."""
    found = _TIME_TEXT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is no time such as '2026-03-01 12:00:00' (in UTC: with Z or +00:00, or no zone)")
    return found[1], found[4]


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal) and value == int(value):
        return int(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise SourceError(f"a key column holds {value!r}; keys are times, whole numbers and text")
    return value
