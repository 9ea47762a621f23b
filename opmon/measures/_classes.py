"""Classes that measures are of: one that is named, or the mean over all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Measure, Ratio
from opmon.errors import InputError
from opmon.quantities import Quantity
from opmon.types import Floats
from opmon.types.labelled import Labelled
from opmon.wording import did_you_mean, nearest

Members = NDArray[np.bool_]


@dataclass(frozen=True)
class OfClass(Measure):
    """A measure of one class, or of all of them together."""

    class_: str | None = None
    """The class it is of."""
    average: Literal["macro", "weighted"] | None = None
    """In place of a class: `macro`, the plain mean over all classes, or `weighted`, by how many inputs are truly of
    each."""

    def __post_init__(self) -> None:
        if (self.class_ is None) == (self.average is None):
            name = type(self).__name__.lower()
            raise InputError(
                f"{name} is of one class or of all: {{{name}: {{class: NAME}}}}, or {{{name}: {{average: macro}}}}; "
                f"got {'neither' if self.class_ is None else 'both'}"
            )
        if self.average not in (None, "macro", "weighted"):
            raise InputError(f"average is 'macro' or 'weighted'; got {self.average!r}")

    def named(self, base: Quantity) -> Quantity:
        """The quantity with the class, or how the classes are put together."""
        return base.of(self.class_) if self.class_ is not None else replace(base, name=f"{self.average} {base.name}")

    def check(self, classes: Sequence[str]) -> None:
        if self.class_ is not None and classes and self.class_ not in classes:
            hint = did_you_mean(nearest(self.class_, classes))
            raise InputError(f"there is no class {self.class_!r}; the classes are: {', '.join(classes)}.{hint}")


def share_of(part: Members, whole: Members) -> Ratio:
    """The share of the inputs in ``whole`` that are in ``part`` too."""
    return Ratio((part & whole).astype(np.float64), whole.astype(np.float64))


def present(rows: Labelled, *said: NDArray[np.str_]) -> list[str]:
    """The classes of which there is an input among the rows, by ``said``; those first that the model has, in order."""
    there = set(np.unique(np.concatenate(said)).tolist()) if said else set()
    return [name for name in rows.classes if name in there] + sorted(there - set(rows.classes))


def left_out(rows: Labelled, there: Sequence[str], what: str) -> tuple[str, ...]:
    """A note of the classes that a mean over classes leaves out."""
    absent = [name for name in rows.classes if name not in there]
    if not absent:
        return ()
    named = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
    return (f"the mean is over {len(there)} of {len(rows.classes)} classes: {what} {named}",)


def weighted_mean(rows: Labelled, weights: Floats, of: Callable[[str], Ratio], names: Sequence[str]) -> float:
    """``Σ_c s_c R_c`` with the share ``s_c`` of the inputs that are truly of class ``c``."""
    total = 0.0
    for name in names:
        ratio = of(name)
        share = float(weights @ (rows.truth == name)) / float(weights.sum())
        total += share * float(weights @ ratio.numerator) / float(weights @ ratio.denominator)
    return total


def weighted_influence(rows: Labelled, weights: Floats, of: Callable[[str], Ratio], names: Sequence[str]) -> Floats:
    """The influence of each row on :func:`weighted_mean`."""
    influence, all_ = np.zeros(len(rows)), float(weights.sum())
    for name in names:
        ratio, true = of(name), (rows.truth == name).astype(np.float64)
        share, whole = float(weights @ true) / all_, float(weights @ ratio.denominator)
        value = float(weights @ ratio.numerator) / whole
        influence += value * (true - share) / all_ + share * (ratio.numerator - value * ratio.denominator) / whole
    return influence
