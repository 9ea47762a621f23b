"""Conditions as they were read: what they say, and which columns they ask about."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from opmon.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

SIGNS = ("==", "=", "!=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the log."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that stands in the condition."""

    value: str | int | float | bool


Value: TypeAlias = Column | Constant


@dataclass(frozen=True, slots=True)
class Compared:
    """``left sign right``; at least one of them is a column."""

    left: Value
    sign: str
    right: Value

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(side.name for side in (self.left, self.right) if isinstance(side, Column))


@dataclass(frozen=True, slots=True)
class OneOf:
    """``column in (…)``."""

    column: Column
    values: tuple[Constant, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)


@dataclass(frozen=True, slots=True)
class Like:
    """``column like 'web-%'``."""

    column: Column
    pattern: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)


@dataclass(frozen=True, slots=True)
class Empty:
    """``column is null``; NaN counts as nothing, too."""

    column: Column

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    inner: Condition

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inner.columns


@dataclass(frozen=True, slots=True)
class Both:
    """All of the conditions."""

    parts: tuple[Condition, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return reduce(operator.add, (part.columns for part in self.parts))


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of the conditions."""

    parts: tuple[Condition, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return reduce(operator.add, (part.columns for part in self.parts))


Condition: TypeAlias = "Compared | OneOf | Like | Empty | Not | Both | Either"


@dataclass(frozen=True)
class Where:
    """Which rows of a log are inputs, as the configuration says it. Reading it takes no Arrow; asking does."""

    text: str
    condition: Condition

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it asks about, each once."""
        return tuple(dict.fromkeys(self.condition.columns))

    def mask(self, rows: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which of the rows fit."""
        import pyarrow.compute as pc

        from opmon.where.asking import holds

        return np.asarray(pc.fill_null(holds(self.condition, rows), False).to_numpy(zero_copy_only=False))

    def excludes(self, constants: Mapping[str, str | int | None]) -> bool:
        """Whether no row fits that has these values in these columns, whatever stands in the others."""
        if not constants or not set(self.columns) & constants.keys():
            return False
        import pyarrow as pa

        from opmon.where.asking import holds

        row = pa.RecordBatch.from_pydict({name: [value] for name, value in constants.items()})
        try:
            return holds(self.condition, row, partly=True)[0].as_py() is False
        except SourceError:  # another file may have another type: reading tells
            return False

    def __str__(self) -> str:
        return self.text
