"""Conditions asked of rows: true, false or unknown (null) of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from opmon.errors import SourceError
from opmon.where.conditions import Both, Compared, Condition, Constant, Either, Empty, Like, Not, OneOf

_SIGNS = {
    "==": pc.equal,
    "=": pc.equal,
    "!=": pc.not_equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_WIDER = {pa.float16(): pa.float32(), pa.uint64(): pa.decimal128(20)}
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_WHOLE = r"^-?\d{1,18}$"
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def holds(condition: Condition, rows: pa.RecordBatch, *, partly: bool = False) -> pa.BooleanArray:
    """Of which rows a condition holds. ``partly``: unknown where a column that it asks about is not among them."""
    match condition:
        case Both(parts):
            return reduce(pc.and_kleene, (holds(part, rows, partly=partly) for part in parts))
        case Either(parts):
            return reduce(pc.or_kleene, (holds(part, rows, partly=partly) for part in parts))
        case Not(inner):
            return pc.invert(holds(inner, rows, partly=partly))
    if partly and not set(condition.columns) <= set(rows.schema.names):
        return pa.nulls(rows.num_rows, pa.bool_())
    match condition:
        case Compared():
            return _compared(condition, rows)
        case OneOf(column, values):
            return _one_of(_column(rows, column.name), values, column.name)
        case Like(column, pattern):
            held = _column(rows, column.name)
            if not _is_text(held.type):
                raise SourceError(f"where: column {column.name!r} is {held.type}; like is for text")
            return pc.match_like(held, pattern)
        case Empty(column):
            return pc.is_null(_column(rows, column.name), nan_is_null=True)


def _compared(condition: Compared, rows: pa.RecordBatch) -> pa.BooleanArray:
    left, sign, right = condition.left, condition.sign, condition.right
    if isinstance(left, Constant):
        return _compared(Compared(right, _MIRRORED.get(sign, sign), left), rows)
    held = _column(rows, left.name)
    if isinstance(right, Constant):
        held = _comparable(held, right)
        return _SIGNS[sign](held, _as_column(right, held.type, left.name))
    other = _column(rows, right.name)
    try:
        return _SIGNS[sign](held, other)
    except pa.ArrowException as exc:
        raise SourceError(
            f"where: column {left.name!r} is {held.type} and {right.name!r} is {other.type}, which cannot be compared"
        ) from exc


def _one_of(held: pa.Array, values: Sequence[Constant], name: str) -> pa.BooleanArray:
    each = [(_comparable(held, value), value) for value in values]
    scalars = [_as_column(value, column.type, name) for column, value in each]
    if all(column.type == scalar.type == held.type for (column, _), scalar in zip(each, scalars, strict=True)):
        allowed = pa.array([scalar.as_py() for scalar in scalars], held.type)
        return pc.if_else(held.is_valid(), pc.is_in(held, allowed), None)
    equal = [pc.equal(column, scalar) for (column, _), scalar in zip(each, scalars, strict=True)]
    return reduce(pc.or_kleene, equal)


def _comparable(held: pa.Array, constant: Constant) -> pa.Array:
    """The column as a constant is compared with it: beside a number, text is the number that it says, or none."""
    if not _is_text(held.type) or isinstance(constant.value, str | bool):
        return held
    trimmed = pc.utf8_trim_whitespace(held)
    said = pc.if_else(pc.match_substring_regex(trimmed, _NUMBER), trimmed, None)
    whole = pc.all(pc.match_substring_regex(said, _WHOLE), min_count=0).as_py()
    return said.cast(pa.int64() if whole else pa.float64())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


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
    if column.type in _WIDER:  # Arrow compares them with nothing, or not with every number
        column = column.cast(_WIDER[column.type])
    if pa.types.is_floating(column.type):  # NaN is no value, as in the inputs themselves
        return pc.if_else(pc.is_nan(column), None, column)
    return column


def _as_column(constant: Constant, kind: pa.DataType, name: str) -> pa.Scalar:
    """The constant as something that is compared with a column of this type."""
    value = constant.value
    try:
        if _is_text(kind):
            return pa.scalar(str(value).lower() if isinstance(value, bool) else str(value), kind)
        if pa.types.is_boolean(kind) or isinstance(value, bool):
            if not (isinstance(value, bool) and pa.types.is_boolean(kind)):
                raise ValueError
            return pa.scalar(value)
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return _moment(value, kind)
        if isinstance(value, str) or not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        ):
            raise ValueError
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(str(value)) if math.isfinite(value) else value)
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
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "; only dates and moments can be"
    if pa.types.is_temporal(kind):
        return "; a time is text such as '2026-03-01' or '2026-03-01T12:00:00+01:00'"
    if pa.types.is_nested(kind):
        return "; name what lies inside it, such as features.age"
    return "; write a number without quotes"
