"""Conditions that have been read, asked of whole batches of rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import SourceError

SIGNS: Mapping[str, Callable[[pa.Array, pa.Array | pa.Scalar], pa.BooleanArray]] = {
    "==": pc.equal,
    "=": pc.equal,
    "!=": pc.not_equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the log."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that stands in the condition."""

    value: str | int | float | bool


Value = Column | Constant


class Condition(Protocol):
    """True, false or unknown (null) of each row."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray: ...


@dataclass(frozen=True, slots=True)
class Compared:
    """``left sign right``; at least one of them is a column."""

    left: Value
    sign: str
    right: Value

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(side.name for side in (self.left, self.right) if isinstance(side, Column))

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        if isinstance(self.left, Constant):
            assert isinstance(self.right, Column)
            return Compared(self.right, _MIRRORED.get(self.sign, self.sign), self.left).holds(rows)
        compare, left = SIGNS[self.sign], _column(rows, self.left.name)
        if isinstance(self.right, Constant):
            return compare(left, _as_column(self.right, left.type, self.left.name))
        right = _column(rows, self.right.name)
        try:
            return compare(left, right)
        except pa.ArrowException as exc:
            raise SourceError(
                f"where: column {self.left.name!r} is {left.type} and {self.right.name!r} is {right.type}, which "
                f"cannot be compared"
            ) from exc


@dataclass(frozen=True, slots=True)
class OneOf:
    """``column in (…)``."""

    column: Column
    values: tuple[Constant, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        column = _column(rows, self.column.name)
        values = pa.array([_as_column(value, column.type, self.column.name).as_py() for value in self.values])
        return pc.if_else(column.is_valid(), pc.is_in(column, values.cast(column.type)), None)


@dataclass(frozen=True, slots=True)
class Like:
    """``column like 'web-%'``."""

    column: Column
    pattern: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        column = _column(rows, self.column.name)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise SourceError(f"where: column {self.column.name!r} is {column.type}; like is for text")
        return pc.match_like(column, self.pattern)


@dataclass(frozen=True, slots=True)
class Empty:
    """``column is null``; NaN counts as nothing, too."""

    column: Column

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        return pc.is_null(_column(rows, self.column.name), nan_is_null=True)


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    inner: Condition

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inner.columns

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        return pc.invert(self.inner.holds(rows))


@dataclass(frozen=True, slots=True)
class Both:
    """All of the conditions."""

    parts: tuple[Condition, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return reduce(operator.add, (part.columns for part in self.parts))

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        return reduce(pc.and_kleene, (part.holds(rows) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of the conditions."""

    parts: tuple[Condition, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return reduce(operator.add, (part.columns for part in self.parts))

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        return reduce(pc.or_kleene, (part.holds(rows) for part in self.parts))


@dataclass(frozen=True)
class Where:
    """Which rows of a log are inputs, as the configuration says it."""

    text: str
    condition: Condition

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it asks about, each once."""
        return tuple(dict.fromkeys(self.condition.columns))

    def mask(self, rows: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which of the rows fit."""
        fits: NDArray[np.bool_] = pc.fill_null(self.condition.holds(rows), False).to_numpy(zero_copy_only=False)
        return fits

    def excludes(self, constants: Mapping[str, str | int | None]) -> bool:
        """Whether no row fits that has these values in these columns, whatever stands in the others."""
        if not constants or not set(self.columns) & constants.keys():
            return False
        row = pa.RecordBatch.from_pydict({name: [value] for name, value in constants.items()})
        try:
            held = _as_far_as_known(self.condition, row)
        except SourceError:  # another file may have another type: reading tells
            return False
        return bool(pc.fill_null(pc.invert(held), False)[0].as_py())

    def __str__(self) -> str:
        return self.text


def _as_far_as_known(condition: Condition, row: pa.RecordBatch) -> pa.BooleanArray:
    """What a condition says of a row of which only some columns are known: null where another one decides."""
    match condition:
        case Both(parts):
            return reduce(pc.and_kleene, (_as_far_as_known(part, row) for part in parts))
        case Either(parts):
            return reduce(pc.or_kleene, (_as_far_as_known(part, row) for part in parts))
        case Not(inner):
            return pc.invert(_as_far_as_known(inner, row))
    if set(condition.columns) <= set(row.schema.names):
        return condition.holds(row)
    return pa.array([None], pa.bool_())


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    index = rows.schema.get_field_index(name)
    if index < 0:
        raise SourceError(
            f"where: the inputs have no column {name!r}; they have: {', '.join(rows.schema.names)}. A column whose "
            f"name has blanks or signs stands in backquotes; text stands in quotes"
        )
    column = rows.column(index)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if pa.types.is_floating(column.type):  # NaN is no value, as in the inputs themselves
        return pc.if_else(pc.is_nan(column), None, column)
    return column


def _as_column(constant: Constant, kind: pa.DataType, name: str) -> pa.Scalar:
    """The constant as something that is compared with a column of this type."""
    value = constant.value
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    try:
        if text:
            return pa.scalar(str(value).lower() if isinstance(value, bool) else str(value), kind)
        if pa.types.is_boolean(kind) or isinstance(value, bool):
            if not (isinstance(value, bool) and pa.types.is_boolean(kind)):
                raise ValueError
            return pa.scalar(value)
        if pa.types.is_temporal(kind):
            return _moment(value, kind)
        if isinstance(value, str) or not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        ):
            raise ValueError
        if pa.types.is_decimal(kind):
            return pa.scalar(str(value)).cast(kind)
        return pa.scalar(value, kind if pa.types.is_floating(kind) else None)
    except (ValueError, OverflowError, pa.ArrowException) as exc:
        raise SourceError(
            f"where: column {name!r} is {kind} and cannot be compared with {value!r}{_instead(kind)}"
        ) from exc


def _moment(value: str | int | float, kind: pa.DataType) -> pa.Scalar:
    """A moment as the column has it: text without a zone is UTC, as columns without one are."""
    if not isinstance(value, str):
        raise ValueError
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(value)
    if pa.types.is_date(kind):
        return pa.scalar(moment.date(), pa.date32()).cast(kind)
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return pa.scalar(aware if kind.tz else aware.replace(tzinfo=None), pa.timestamp("us", kind.tz)).cast(kind)


def _instead(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "; write true or false"
    if pa.types.is_temporal(kind):
        return "; a time is text such as '2026-03-01' or '2026-03-01T12:00:00+01:00'"
    if pa.types.is_nested(kind):
        return "; name what lies inside it, such as features.age"
    return "; write a number without quotes"
