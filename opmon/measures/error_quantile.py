"""How large errors are, up to a share of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Measure, Quantile, truth_numbers
from opmon.errors import InputError
from opmon.quantities import Better, Problem, Quantity
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class ErrorQuantile(Measure):
    """The error that a share of the inputs does not exceed, in the unit of the label: 0.5 gives the median error.

    The interval holds it for all inputs of the round in 95 of 100 rounds: it ends at the errors that bound the share.
    Where too few labels lie beyond a bound, the interval has no end there, and a note tells so.
    The estimate lies between two labelled errors, where it is as likely too high as too low.
    It assumes that labels are right; single huge errors do not matter to it.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("regression",)

    share: float = 0.9
    """The share of inputs whose error is no larger."""
    signed: bool = False
    """Whether errors have their signs, prediction minus truth, in place of their sizes."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InputError(f"share lies between 0 and 1, such as 0.9; got {self.share}")

    def quantity(self, unit: str | None = None) -> Quantity:
        of = "error" if self.signed else "absolute error"
        name = f"{100 * self.share:g} % quantile of the {of}"
        better: Better = "zero" if self.signed else "lower"
        return Quantity(name, better=better, scale="units of the label").measured_in(unit)

    def quantile(self, rows: Labelled) -> Quantile:
        truth, predicted = truth_numbers(rows)
        errors = predicted - truth
        if self.signed:
            return Quantile(np.asarray(errors), self.share)
        return Quantile(np.abs(errors), self.share, 0.0)
