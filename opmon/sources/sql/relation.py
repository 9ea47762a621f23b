"""A table or a query as the database describes it now: its columns, their types in Arrow, how they are asked for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import NULLTYPE, TypeEngine

from opmon.errors import InputError, SourceError
from opmon.sources.sql.connecting import Session
from opmon.wording import did_you_mean, nearest

_LOOKED_AT = 1000
_DIGITS = 18
"""Whole numbers of so many digits fit into 64 bits."""
_UTC = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Column:
    """One column. ``expression`` is what is asked for, in a form that the driver gives as plain values."""

    name: str
    kind: pa.DataType
    raw: sa.ColumnElement[Any]
    """The column itself, as keys are compared."""
    expression: sa.ColumnElement[Any]
    nullable: bool = True


@dataclass(frozen=True)
class Relation:
    """What is read: a table, or a query."""

    part: str
    origin: sa.FromClause
    columns: Mapping[str, Column]
    identity: tuple[str, ...] = ()
    """The primary key, where it has one."""
    name: tuple[str | None, str] | None = field(default=None)
    """Schema and name, of a table."""

    def column(self, name: str, called: str = "column") -> Column:
        """A column by its name, or an error that names those there are."""
        if name not in self.columns:
            hint = did_you_mean(nearest(name, self.columns))
            raise SourceError(f"{self.part} has no {called} {name!r}; it has: {', '.join(self.columns)}.{hint}")
        return self.columns[name]

    def schema(self, names: Sequence[str] | None) -> pa.Schema:
        chosen = self.columns if names is None else {name: self.column(name) for name in dict.fromkeys(names)}
        return pa.schema([(name, column.kind) for name, column in chosen.items()])


def table(opened: Session, given: str, declared: Mapping[str, pa.DataType]) -> Relation:
    """The table or view ``given``, as ``name`` or ``schema.name``."""
    inspector = sa.inspect(opened.connection)
    schema, name = _found(inspector, given)
    opened.step()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # types that SQLAlchemy does not know are read as text
        told = inspector.get_columns(name, schema)
        key = inspector.get_pk_constraint(name, schema).get("constrained_columns") or ()
    names = [str(each["name"]) for each in told]
    origin = sa.table(name, *(sa.column(each) for each in names), schema=schema)
    known = {str(each["name"]): each["type"] for each in told}
    columns = _columns(opened, origin, known, declared)
    for each in told:
        column = columns[str(each["name"])]
        if each.get("nullable") is False:
            columns[column.name] = Column(column.name, column.kind, column.raw, column.expression, nullable=False)
    return Relation(given, origin, columns, tuple(map(str, key)), (schema, name))


def query(opened: Session, text: str, declared: Mapping[str, pa.DataType]) -> Relation:
    """What a query gives, as if it were a table."""
    plain = sa.text(text.strip().rstrip(";").replace(":", r"\:") + "\n")
    empty = sa.select(sa.text("*")).select_from(plain.columns().subquery("asked")).where(sa.false())
    opened.step()
    result = opened.connection.execute(empty)
    described: Sequence[Any] = result.cursor.description if result.cursor is not None else ()
    names = [str(each[0]) for each in described]
    result.close()
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"the query gives the column {twice!r} more than once; give one of them another name (as)")
    origin = plain.columns(*(sa.column(name) for name in names)).subquery("asked")
    if opened.dialect == "postgresql":
        known = dict(zip(names, _named(opened, described), strict=True))
    else:
        known = dict.fromkeys(names, NULLTYPE)
    return Relation("query", origin, _columns(opened, origin, known, declared))


def _found(inspector: sa.Inspector, given: str) -> tuple[str | None, str]:
    schema, _, name = given.rpartition(".")
    for place, called in ((None, given), (schema or None, name)):
        if inspector.has_table(called, place):
            return place, called
    try:
        there = [*inspector.get_table_names(schema or None), *inspector.get_view_names(schema or None)]
    except sa.exc.SQLAlchemyError:
        there = []
    shown = ", ".join(sorted(there)[:20]) or "no table that this user may see"
    raise SourceError(f"there is no table {given!r}; there are: {shown}.{did_you_mean(nearest(name, there))}")


def _named(opened: Session, described: Sequence[Any]) -> list[TypeEngine[Any]]:
    """The types of columns that PostgreSQL describes: the second of each is the number of its type, then come how many
    digits it has in all, and how many of them are a fraction's."""
    text = sa.select(*(sa.func.format_type(sa.cast(each[1], postgresql.OID), None) for each in described))
    known: Mapping[str, Any] = postgresql.base.ischema_names

    def made(name: str) -> TypeEngine[Any]:
        if name.endswith("[]"):
            return postgresql.ARRAY(made(name[:-2]))
        if name.endswith("with time zone"):
            return sa.types.DateTime(timezone=True) if name.startswith("timestamp") else NULLTYPE
        found = known.get(name)
        return found() if isinstance(found, type) else NULLTYPE

    found = [made(str(name)) for name in opened.row(text)]
    return [
        sa.types.Numeric(each[4], each[5]) if isinstance(kind, sa.types.Numeric) and each[4] else kind
        for each, kind in zip(described, found, strict=True)
    ]


def _columns(
    opened: Session,
    origin: sa.FromClause,
    known: Mapping[str, TypeEngine[Any]],
    declared: Mapping[str, pa.DataType],
) -> dict[str, Column]:
    missing = next((name for name in declared if name not in known), None)
    if missing is not None:
        raise InputError(f"types names the column {missing!r}, which is not there; there are: {', '.join(known)}")
    loose = _looked_up(opened, origin, known, declared)
    columns = {}
    for name, type_ in known.items():
        raw = origin.c[name]
        kind, cast = _meant(type_, opened.dialect)
        expression: sa.ColumnElement[Any] = raw if cast is None else sa.type_coerce(sa.cast(raw, cast), NULLTYPE)
        if cast is not None and isinstance(type_, sa.types.Numeric) and not type_.scale:
            kind, expression = _of_whole(type_, raw, kind, declared.get(name), opened.dialect)
        columns[name] = Column(name, declared.get(name) or loose.get(name) or kind, raw, expression)
    return columns


def _of_whole(
    type_: sa.types.Numeric[Any],
    raw: sa.ColumnElement[Any],
    kind: pa.DataType,
    declared: pa.DataType | None,
    dialect: str,
) -> tuple[pa.DataType, sa.ColumnElement[Any]]:
    """The type of decimals that may all be whole numbers, and what is asked for: as fractions they lose digits, so
    that of two ids only one might be left. What is declared text, or fits into 64 bits, keeps all."""
    cast: TypeEngine[Any] = sa.types.Double()
    if declared is not None and pa.types.is_string(declared):
        cast = _text(dialect)
    elif declared is None and type_.scale == 0 and type_.precision and type_.precision <= _DIGITS:
        kind, cast = pa.int64(), sa.types.BigInteger()
        raw = sa.func.nullif(raw, sa.cast("NaN", sa.types.Numeric)) if dialect == "postgresql" else raw
    return kind, sa.type_coerce(sa.cast(raw, cast), NULLTYPE)


def _text(dialect: str) -> TypeEngine[Any]:
    return sa.types.Text() if dialect == "postgresql" else sa.types.String()


def _looked_up(
    opened: Session,
    origin: sa.FromClause,
    known: Mapping[str, TypeEngine[Any]],
    declared: Mapping[str, pa.DataType],
) -> dict[str, pa.DataType]:
    """The types of columns that the database says nothing of, from the first rows there are."""
    if opened.dialect == "postgresql":
        return {}
    silent = [name for name, type_ in known.items() if isinstance(type_, sa.types.NullType) and name not in declared]
    if not silent:
        return {}
    rows = opened.rows(sa.select(*(origin.c[name] for name in silent)).limit(_LOOKED_AT))
    return {name: _kind_of([row[place] for row in rows]) for place, name in enumerate(silent)}


def _kind_of(values: Sequence[Any]) -> pa.DataType:
    try:
        kind = pa.array(values).type
    except (pa.ArrowException, TypeError):
        return pa.string()
    return pa.string() if pa.types.is_null(kind) else pa.float64() if pa.types.is_decimal(kind) else kind


def _meant(type_: TypeEngine[Any], dialect: str) -> tuple[pa.DataType, TypeEngine[Any] | None]:
    """The Arrow type of a column's values, and what the database makes of them first; None leaves them as they are.

    SQLite keeps any value in any column: nothing is made of them there, so that what does not fit is seen.
    """
    is_loose = dialect == "sqlite"
    if isinstance(type_, sa.types.ARRAY):
        kind, cast = _meant(type_.item_type, dialect)
        return pa.list_(kind), None if cast is None else postgresql.ARRAY(cast)
    if isinstance(type_, sa.types.Boolean):
        return pa.bool_(), None
    if isinstance(type_, sa.types.Integer):
        return pa.int64(), None
    if isinstance(type_, sa.types.Float):
        return pa.float64(), None
    if isinstance(type_, sa.types.Numeric):
        return pa.float64(), None if is_loose else sa.types.Double()
    if isinstance(type_, sa.types.DateTime):
        return (_UTC if type_.timezone or is_loose else pa.timestamp("us")), None
    if isinstance(type_, sa.types.Date):
        return pa.date32(), None
    if isinstance(type_, sa.types.LargeBinary | sa.types.BINARY | sa.types.VARBINARY):
        return pa.binary(), None
    if is_loose or isinstance(type_, sa.types.String):
        return pa.string(), None
    return pa.string(), _text(dialect)
