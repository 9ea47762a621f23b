"""A variable that is a column of the log: a risk, a lag, another model's doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Head
from opmon.errors import InputError
from opmon.types import Array

_FLOOR = 1e-6


@dataclass(frozen=True)
class Column(Head):
    """A numeric column of the log, larger = more suspicious; with ``suspicious: low`` the other way round.

    Below zero nothing is less suspicious than zero; a missing value is as suspicious as the most suspicious one beside
    it. ``low`` is for a confidence, a number between 0 and 1: the variable is what it lacks to 1.
    """

    column: str
    """The column of the log."""
    suspicious: Literal["high", "low"] = "high"
    """Whether its high or its low values are suspicious; ``low`` is for a share, such as a confidence."""

    def __post_init__(self) -> None:
        if self.suspicious not in ("high", "low"):
            raise InputError(f"suspicious must be high or low; got {self.suspicious!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def of_columns(self, values: Mapping[str, Array]) -> NDArray[np.float32]:
        column = np.asarray(values[self.column], np.float64)
        known = np.isfinite(column)
        if self.suspicious == "low":
            odd = known & ((column < 0) | (column > 1))
            if odd.any():
                raise InputError(
                    f"column {self.column!r} holds {column[odd][0]:g}, and a variable with suspicious: low is a share "
                    f"between 0 and 1; name a column that is larger where the model is less sure"
                )
            column = 1 - column
        top = float(column[known].max()) if known.any() else 1.0
        return np.maximum(np.where(known, column, top), _FLOOR).astype(np.float32)
