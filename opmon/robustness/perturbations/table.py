"""Tables: noise, missing, scale, shift and swap. Inputs are numbers, one row each; ``categorical`` columns hold codes,
which are not scaled, shifted or blurred, and whole numbers stay whole."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Perturbation
from opmon.errors import InputError
from opmon.robustness.perturbations.base import Kind, parameter, require_table
from opmon.types import Array

Table = Array


@dataclass(frozen=True)
class _OnColumns(Perturbation):
    """The base of the table perturbations: the columns that they change, and the spread of each over all inputs."""

    kind: ClassVar[Kind] = "table"
    amounts: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """The amount of change, one for each severity, the mildest first."""
    categorical: tuple[int, ...] = ()
    """The numbers of the columns that hold categories."""
    columns: tuple[int, ...] | None = None
    """The numbers of the columns that may change; None: all."""
    spread: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    """The standard deviation of each column, computed from the inputs."""
    middle: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    """The median of each column, computed from the inputs."""

    def __post_init__(self) -> None:
        require_table("amounts", self.amounts, 0, 1e6)

    def fitted(self, inputs: Table) -> Self:
        """The perturbation with each column's standard deviation and median over all inputs."""
        if inputs.ndim != 2:
            raise InputError(f"a table is inputs × columns; got shape {inputs.shape}")
        outside = [c for c in (*self.categorical, *(self.columns or ())) if not 0 <= c < inputs.shape[1]]
        if outside:
            raise InputError(f"columns are numbered 0..{inputs.shape[1] - 1}; got {outside[0]}")
        values = inputs.astype(np.float64)
        return replace(self, spread=np.nanstd(values, axis=0), middle=np.nanmedian(values, axis=0))

    def _amount(self, severity: int) -> float:
        return float(parameter(self.amounts, severity, type(self).__name__.lower()))

    def _numeric(self, width: int) -> NDArray[np.int64]:
        wanted = range(width) if self.columns is None else self.columns
        return np.array([c for c in wanted if c not in self.categorical], np.int64)

    def _any(self, width: int) -> NDArray[np.int64]:
        return np.arange(width) if self.columns is None else np.array(self.columns, np.int64)

    def _scale_of(self, inputs: Table) -> NDArray[np.float64]:
        return np.nanstd(inputs.astype(np.float64), axis=0) if self.spread is None else self.spread


def _as_before(values: NDArray[np.float64], inputs: Table, columns: NDArray[np.int64]) -> Table:
    """The columns replaced, in the old type; a column of whole numbers stays one."""
    result = inputs.copy()
    for place, column in enumerate(columns.tolist()):
        old = inputs[:, column].astype(np.float64)
        finite = old[np.isfinite(old)]
        new = np.rint(values[:, place]) if np.array_equal(finite, np.rint(finite)) else values[:, place]
        result[:, column] = new.astype(inputs.dtype, copy=False)
    return result


@dataclass(frozen=True)
class Noise(_OnColumns):
    """x ← x + c·sd·ε, ε standard normal for each cell. Table: a tenth to a half of the column's standard deviation."""

    def apply(self, inputs: Table, severity: int, rng: np.random.Generator) -> Table:
        columns = self._numeric(inputs.shape[1])
        noise = rng.standard_normal(inputs.shape)[:, columns]
        values = inputs[:, columns].astype(np.float64)
        return _as_before(values + self._amount(severity) * self._scale_of(inputs)[columns] * noise, inputs, columns)


@dataclass(frozen=True)
class Missing(_OnColumns):
    """A share c of the cells is lost: the median of the column stands there, as an imputation would put it, or NaN with
    ``fill="nan"`` for a model that takes it. Table: 5 % to 40 %."""

    amounts: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4)
    """Shares of the cells that are lost, one for each severity, the mildest first."""
    fill: str = "median"
    """What replaces a lost value: median, or nan; median alone where a model takes whole numbers."""

    def __post_init__(self) -> None:
        require_table("amounts", self.amounts, 0, 1)
        if self.fill not in ("median", "nan"):
            raise InputError(f"fill is median or nan; got {self.fill!r}")

    def apply(self, inputs: Table, severity: int, rng: np.random.Generator) -> Table:
        if self.fill == "nan" and not np.issubdtype(inputs.dtype, np.floating):
            raise InputError(f"the model takes {inputs.dtype}, which has no missing values: say fill: median")
        columns = self._any(inputs.shape[1])
        lost = rng.random(inputs.shape)[:, columns] < self._amount(severity)
        middle = np.nanmedian(inputs.astype(np.float64), axis=0) if self.middle is None else self.middle
        value = np.full(len(columns), np.nan) if self.fill == "nan" else middle[columns]
        result = inputs.copy()
        result[:, columns] = np.where(lost, value.astype(inputs.dtype), inputs[:, columns])
        return result


@dataclass(frozen=True)
class Scale(_OnColumns):
    """x ← x·(1 + c) or x / (1 + c) for a whole column, the direction drawn for each column: another unit, a wrong
    calibration. Table: 10 % to 50 %."""

    def apply(self, inputs: Table, severity: int, rng: np.random.Generator) -> Table:
        columns = self._numeric(inputs.shape[1])
        up = np.random.default_rng(columns.tolist()).random(len(columns)) < 0.5  # one way for all inputs
        factor = np.where(up, 1 + self._amount(severity), 1 / (1 + self._amount(severity)))
        return _as_before(inputs[:, columns].astype(np.float64) * factor, inputs, columns)


@dataclass(frozen=True)
class Shift(_OnColumns):
    """x ← x ± c·sd for a whole column, the direction drawn for each column: the population has moved. Table: a fifth of
    a standard deviation to a whole one."""

    amounts: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
    """Shifts in standard deviations, one for each severity, the mildest first."""

    def apply(self, inputs: Table, severity: int, rng: np.random.Generator) -> Table:
        columns = self._numeric(inputs.shape[1])
        up = np.random.default_rng([1, *columns.tolist()]).random(len(columns)) < 0.5
        moved = np.where(up, 1, -1) * self._amount(severity) * self._scale_of(inputs)[columns]
        return _as_before(inputs[:, columns].astype(np.float64) + moved, inputs, columns)


@dataclass(frozen=True)
class Swap(_OnColumns):
    """A share c of the cells takes the value of another input in the same column: rows mixed up in a join. What each
    column holds stays the same, what belongs together does not. Table: 5 % to 40 %."""

    amounts: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4)
    """Shares of the cells that are swapped, one for each severity, the mildest first."""

    def apply(self, inputs: Table, severity: int, rng: np.random.Generator) -> Table:
        columns = self._any(inputs.shape[1])
        swapped = rng.random(inputs.shape)[:, columns] < self._amount(severity)
        donors = rng.integers(0, len(inputs), inputs.shape)[:, columns]
        result = inputs.copy()
        result[:, columns] = np.where(swapped, inputs[donors, columns[None]], inputs[:, columns])
        return result
