"""Severity tables and the form of pictures, which perturbations share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Perturbation
from opmon.errors import InputError
from opmon.types import Array

Kind = Literal["image", "text", "table", "any"]
Images = NDArray[np.float32]
T = TypeVar("T")
"""Inputs × height × width × channels, in [0, 1]."""


@dataclass(frozen=True)
class Custom(Perturbation):
    """A function ``(inputs, severity, rng) -> inputs`` as a perturbation."""

    kind: ClassVar[Kind] = "any"
    function: Callable[[Array, int, np.random.Generator], Array]

    def apply(self, inputs: Array, severity: int, rng: np.random.Generator) -> Array:
        return self.function(inputs, severity, rng)


def parameter(table: tuple[T, ...], severity: int, name: str) -> T:
    """The entry of a severity table; severity 1 is its first."""
    if not 1 <= severity <= len(table):
        raise InputError(f"{name} has severities 1..{len(table)}; got {severity}")
    return table[severity - 1]


def require_table(name: str, table: tuple[object, ...], low: float, high: float) -> None:
    """Raise an error unless a severity table holds at least one number, all finite and in a range."""
    if not table:
        raise InputError(f"{name} needs at least one entry, one for each severity from 1")
    for value in table:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise InputError(f"{name} holds numbers from {low:g} to {high:g}, one for each severity; got {value!r}")


def signs(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """−1 or 1 for each input."""
    return 2 * rng.integers(0, 2, count) - 1
