"""Classes that measures are of: one that is named, or the mean over all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Measure, Ratio
from opmon.errors import InputError
from opmon.quantities import Problem, Quantity
from opmon.types import Array, Floats
from opmon.types.labelled import Labelled
from opmon.wording import did_you_mean, nearest

Members = NDArray[np.bool_]


@dataclass(frozen=True)
class OfClass(Measure):
    """A measure of one class, or of all of them together; of the labels of an input where there are several."""

    problems: ClassVar[tuple[Problem, ...]] = ("classification", "multilabel")

    class_: str | None = None
    """The class it is of."""
    average: Literal["macro", "weighted", "micro"] | None = None
    """In place of a class: `macro`, the plain mean over all classes; `weighted`, by how many inputs are truly of each;
    `micro`, of all answers of all classes together."""

    def __post_init__(self) -> None:
        if (self.class_ is None) == (self.average is None):
            name = self._base().name.lower()
            raise InputError(
                f"{name} is of one class or of all: {{{name}: {{class: NAME}}}}, or {{{name}: {{average: macro}}}}; "
                f"got {'neither' if self.class_ is None else 'both'}"
            )
        if self.average not in (None, "macro", "weighted", "micro"):
            raise InputError(f"average is 'macro', 'weighted' or 'micro'; got {self.average!r}")

    def quantity(self, unit: str | None = None) -> Quantity:
        base = self._base()
        return base.of(self.class_) if self.class_ is not None else replace(base, name=f"{self.average} {base.name}")

    def chances(self, classes: Sequence[str]) -> tuple[str, ...]:
        return super().chances(classes) if self.class_ is None else (self.class_,)

    def check(self, classes: Sequence[str]) -> None:
        if self.class_ is not None:
            require_class(self.class_, classes)

    def ratio(self, rows: Labelled) -> Ratio | None:
        if self.class_ is not None:
            return self._of(truly(rows, self.class_), said(rows, self.class_))
        return _pooled([self._of(truly(rows, name), said(rows, name)) for name in there(rows)]) if self._micro else None

    def possible(self, rows: Labelled) -> Sequence[Ratio] | None:
        if self.class_ is None or rows.predicted.ndim > 1:
            return None
        own = said(rows, self.class_)
        return [self._of(np.full(len(rows), true), own) for true in (True, False)]

    def ratios(self, rows: Labelled) -> Sequence[Ratio] | None:
        if self.average != "macro":
            return None
        return [self._of(truly(rows, name), said(rows, name)) for name in there(rows)]

    def value(self, rows: Labelled, weights: Floats) -> float:
        if self.average != "weighted":
            return super().value(rows, weights)
        return sum(share * one.value(weights) for share, one, _ in self._weighted(rows, weights))

    def linearised(self, rows: Labelled, weights: Floats) -> Floats | None:
        """``Σ_c (R_c (t_kc − s_c) / T + s_c u_kc)`` with the share ``s_c`` of class ``c`` in all ``T`` true labels."""
        if self.average != "weighted":
            return super().linearised(rows, weights)
        influence, labels = np.zeros(len(rows)), _labels(rows)
        total = float(weights @ labels)
        for share, one, true in self._weighted(rows, weights):
            influence += one.value(weights) * (true - share * labels) / total + share * one.influence(weights)
        return influence

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        if self.average in (None, "micro"):
            return ()
        counted = [name for name in there(rows) if self._counts(rows, name)]
        absent = [name for name in rows.classes if name not in counted]
        if not absent:
            return ()
        named = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
        total = len(set(rows.classes) | set(counted))
        told = f"the mean is over {len(counted)} of {total} classes: no answer counts for {named}"
        return (f"{told}; the interval allows for any value there",)

    @property
    def _micro(self) -> bool:
        return self.average == "micro"

    def _counts(self, rows: Labelled, name: str) -> bool:
        return self._of(truly(rows, name), said(rows, name)).counts

    def _weighted(self, rows: Labelled, weights: Floats) -> list[tuple[float, Ratio, Floats]]:
        """Share, ratio and true members of each class that some input truly is of."""
        parts, total = [], float(weights @ _labels(rows))
        for name in there(rows):
            true = truly(rows, name)
            one = self._of(true, said(rows, name))
            if true.any() and one.counts:
                members = true.astype(np.float64)
                parts.append((float(weights @ members) / total, one, members))
        if not parts:
            raise InputError(f"{self.quantity().name} is undefined: no answer counts for any class")
        return parts

    @abstractmethod
    def _base(self) -> Quantity:
        """The quantity without the class."""

    @abstractmethod
    def _of(self, true: Members, said: Members) -> Ratio:
        """The ratio of one class."""


def require_class(name: str, classes: Sequence[str]) -> None:
    """Raise an error where a class is not among those there are; none are known yet: anything may be one."""
    if classes and name not in classes:
        hint = did_you_mean(nearest(name, classes))
        raise InputError(f"there is no class {name!r}; the classes are: {', '.join(classes)}.{hint}")


def share_of(part: Members, whole: Members) -> Ratio:
    """The share of the inputs in ``whole`` that are in ``part`` too."""
    return Ratio((part & whole).astype(np.float64), whole.astype(np.float64))


def truly(rows: Labelled, name: str) -> Members:
    """Which rows truly are of a class."""
    return _members(rows, rows.truth, name)


def said(rows: Labelled, name: str) -> Members:
    """Which rows the model says are of a class."""
    return _members(rows, rows.predicted, name)


def there(rows: Labelled) -> list[str]:
    """The classes: those of the model, and what else the rows hold."""
    if rows.truth.ndim == 2:
        return list(rows.classes)
    held = set(np.unique(rows.truth).tolist()) | set(np.unique(rows.predicted).tolist())
    return [*rows.classes, *sorted(held - set(rows.classes))]


def _members(rows: Labelled, values: Array, name: str) -> Members:
    if values.ndim == 1:
        return np.asarray(values == name)
    if name not in rows.classes:
        require_class(name, rows.classes)
    return np.asarray(values[:, rows.classes.index(name)], dtype=np.bool_)


def _labels(rows: Labelled) -> Floats:
    """How many classes each row truly is of."""
    return np.ones(len(rows)) if rows.truth.ndim == 1 else rows.truth.sum(axis=1).astype(np.float64)


def _pooled(every: Sequence[Ratio]) -> Ratio:
    return Ratio(
        np.sum([one.numerator for one in every], axis=0),
        np.sum([one.denominator for one in every], axis=0),
        heaviest=sum(one.heaviest for one in every),
    )
