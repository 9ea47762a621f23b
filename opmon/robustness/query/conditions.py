"""Conditions that a question is read into, which can be asked of any number of tests at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opmon.types import Array

Values = Mapping[str, Array]
"""One number per test for each name: the perturbations, ``order``, ``severity_sum``, ``quality``."""
Mask = NDArray[np.bool_]

COMPARISONS: Mapping[str, Callable[[Array | float, Array | float], Mask | bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
}


class Condition(Protocol):
    """A question that is true or false of each test. ``names`` are the columns that it asks about."""

    def holds(self, values: Values, count: int) -> Mask: ...

    @property
    def names(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Compared:
    """``left sign right``, each a name or a number."""

    left: str | float
    sign: str
    right: str | float

    def holds(self, values: Values, count: int) -> Mask:
        left, right = (values[side] if isinstance(side, str) else side for side in (self.left, self.right))
        return np.broadcast_to(np.asarray(COMPARISONS[self.sign](left, right)), (count,))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(side for side in (self.left, self.right) if isinstance(side, str))


@dataclass(frozen=True, slots=True)
class OneOf:
    """``name in {…}``."""

    name: str
    numbers: tuple[float, ...]

    def holds(self, values: Values, count: int) -> Mask:
        return np.isin(values[self.name], self.numbers)

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True, slots=True)
class Everything:
    """``all``."""

    def holds(self, values: Values, count: int) -> Mask:
        return np.ones(count, bool)

    @property
    def names(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True, slots=True)
class Not:
    inner: Condition

    def holds(self, values: Values, count: int) -> Mask:
        return ~self.inner.holds(values, count)

    @property
    def names(self) -> frozenset[str]:
        return self.inner.names


@dataclass(frozen=True, slots=True)
class Several:
    """All of the conditions, or (``any_of``) at least one."""

    parts: tuple[Condition, ...]
    any_of: bool

    def holds(self, values: Values, count: int) -> Mask:
        masks = [part.holds(values, count) for part in self.parts]
        return np.asarray(np.any(masks, axis=0) if self.any_of else np.all(masks, axis=0), bool)

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(part.names for part in self.parts))
