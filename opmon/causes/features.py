"""What is known of each labelled input: numbers or words, and how one speaks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from opmon.types import Floats
from opmon.wording import counting

MISSING = "missing"


@dataclass(frozen=True, eq=False)
class Measurements:
    """A number of each input, NaN where there is none, such as a column of amounts."""

    name: str
    values: Floats
    above: str | None = None
    """How inputs with large values are called, such as "noise in the pictures"; None: "NAME over 60"."""
    below: str | None = None
    """Those with small ones; None: "NAME up to 60"."""
    unit: str = ""

    def over(self, cut: float) -> str:
        return self.above or f"{self.name} over {_number(cut)}{self.unit}"

    def up_to(self, cut: float) -> str:
        return self.below or f"{self.name} up to {_number(cut)}{self.unit}"

    @property
    def is_named(self) -> bool:
        """Whether it has words of its own, in which no number is told."""
        return self.above is not None or self.below is not None


@dataclass(frozen=True, eq=False)
class Values:
    """A word of each input, None where there is none, such as a column of countries."""

    name: str
    values: NDArray[np.object_]
    called: str = "{name} = {value}"
    """How inputs with a value are called."""
    sparse: bool = False
    """Whether an input without a value is nothing special, such as a text without some word."""

    def of(self, value: str) -> str:
        shown = value if len(value) <= 40 else f"{value[:39]}…"
        return self.called.format(name=self.name, value=shown)


Feature: TypeAlias = Measurements | Values


def _number(value: float) -> str:
    """
    >>> _number(60.0), _number(0.125), _number(1234567.0), _number(0.00005)
    ('60', '0.125', '1,234,567', '0.00005')
    """
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return counting(value)
