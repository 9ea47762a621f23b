"""A measure of one's own, by a function."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

from opmon.abc import Measure
from opmon.errors import InputError, PluginError
from opmon.quantities import PROBLEMS, Problem, Quantity
from opmon.types import Array, Floats, Numbers
from opmon.types.labelled import Labelled
from opmon.wording import counted

Own = Callable[[Array, Array, Numbers | None, Floats], float]
Computing = Callable[[str, Labelled, Floats], float]
"""Computes what the function at a path gives of labelled inputs and their weights."""

_ROUNDING = 1e-6
_others: list[Computing] = []


class FunctionFailed(Exception):
    """There is no number; the text says why."""


@contextmanager
def computed_by(computing: Computing) -> Iterator[None]:
    """Meanwhile functions are not called here, but by this: a service computes them in processes of their own."""
    _others.append(computing)
    try:
        yield
    finally:
        _others.remove(computing)


@dataclass(frozen=True)
class Function(Measure):
    """A function of your own: `function(truth, prediction, scores, weight)` gives one number for all inputs.

    It is called with one entry per labelled input; the weights say how many inputs each stands for, and must be used:
    `numpy.average(..., weights=weight)`, or `sample_weight=` in scikit-learn. `scores` is None where none are known.
    The interval is that of a weighted bootstrap, about 400 calls: it holds the number for all inputs of the round in 95
    of 100 rounds where the function is smooth and many labels matter to it. A service calls it in a process of its own.
    It assumes that the same labels in another order, or weights twice as large, give the same number.
    """

    problems: ClassVar[tuple[Problem, ...]] = PROBLEMS

    path: str
    """Where it is, as `module:function`; its module is installed or on PYTHONPATH."""
    name: str | None = None
    """What it is called; none: as the function is."""
    unit: str = ""
    """What its numbers are measured in."""
    better: Literal["higher", "lower", "zero", "neither"] = "higher"
    """Which way is better."""
    share: bool = False
    """Whether it lies between 0 and 1 and is written in per cent."""

    def __post_init__(self) -> None:
        self._function()

    def quantity(self, unit: str | None = None) -> Quantity:
        name = self.name or self.path.rpartition(":")[2].replace("_", " ")
        return Quantity(name, self.unit, share=self.share, better=self.better)

    def value(self, rows: Labelled, weights: Floats) -> float:
        try:
            number = (_others[-1] if _others else self._here)(self.path, rows, weights)
        except Exception as exc:  # a function of the user's may fail in any way
            on = counted(len(rows), "labelled input")
            why = str(exc) if isinstance(exc, FunctionFailed) else f"{type(exc).__name__}: {exc}"
            raise InputError(f"the measure {self.path!r} fails on {on}: {why}") from exc
        if not math.isfinite(number):
            raise InputError(
                f"the measure {self.path!r} gives {number} for {counted(len(rows), 'labelled input')}, which is no "
                "finite number"
            )
        if not self.share:
            return number
        if not -_ROUNDING <= number <= 1 + _ROUNDING:
            raise InputError(
                f"the measure {self.path!r} gives {number:g}, and a share lies between 0 and 1: divide it, or leave "
                "'share' out"
            )
        return min(max(number, 0.0), 1.0)

    def _here(self, path: str, rows: Labelled, weights: Floats) -> float:
        return float(self._function()(rows.truth, rows.predicted, rows.scores, weights))

    def _function(self) -> Own:
        module, _, name = self.path.partition(":")
        if not module or not name:
            raise PluginError(f"a function is named as module:function, such as mine.measures:gain; got {self.path!r}")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as exc:
            raise PluginError(f"there is no measure {self.path!r}: {exc}; is its module installed?") from exc
        if not callable(found):
            raise PluginError(
                f"{self.path!r} is no function; it takes (truth, prediction, scores, weight) and gives a number"
            )
        own: Own = found
        return own
