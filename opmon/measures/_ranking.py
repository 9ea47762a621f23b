"""How well scores rank the inputs of a class above the others: weighted areas, and each draw's influence on them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Measure
from opmon.errors import InputError
from opmon.measures._classes import require_class
from opmon.measures._probabilities import truths
from opmon.quantities import Problem, Quantity
from opmon.types import Floats
from opmon.types.labelled import Labelled

Members = NDArray[np.bool_]


@dataclass(frozen=True)
class Ranking(Measure):
    """A measure of how the scores of a class rank, of one class or as the mean over all."""

    problems: ClassVar[tuple[Problem, ...]] = ("classification", "multilabel")
    needs_scores: ClassVar[bool] = True

    class_: str | None = None
    """The class whose score is looked at; none: the plain mean over all classes, each against the others."""

    def quantity(self, unit: str | None = None) -> Quantity:
        base = self._base()
        return base if self.class_ is None else base.of(self.class_)

    def check(self, classes: Sequence[str]) -> None:
        if self.class_ is not None:
            require_class(self.class_, classes)

    def chances(self, classes: Sequence[str]) -> tuple[str, ...]:
        return super().chances(classes) if self.class_ is None else (self.class_,)

    def value(self, rows: Labelled, weights: Floats) -> float:
        columns = self._columns(rows)
        return sum(self._area(scores, true, weights) for scores, true in columns) / len(columns)

    def linearised(self, rows: Labelled, weights: Floats) -> Floats:
        columns = self._columns(rows)
        total = np.zeros(len(rows))
        for scores, true in columns:
            total += self._influence(scores, true, weights)
        return total / len(columns)

    def groups(self, rows: Labelled) -> Sequence[Members]:
        return [part for _, true in self._columns(rows) for part in (true, ~true)]

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        counted, every = len(self._columns(rows)), len(self._names(rows))
        if counted == every:
            return ()
        return (f"the mean is over {counted} of {every} classes: of the others there is no answer, or nothing else",)

    def _names(self, rows: Labelled) -> Sequence[str]:
        return rows.classes if self.class_ is None else (self.class_,)

    def _columns(self, rows: Labelled) -> list[tuple[Floats, Members]]:
        """The scores of each class with the rows that truly are of it; classes of all or no rows are left out."""
        self.check(rows.classes)
        name, true = self._base().name, truths(rows, self._base().name)
        scores = np.asarray(rows.scores, dtype=np.float64)
        places = [rows.classes.index(one) for one in self._names(rows)]
        columns = [(scores[:, at], true[:, at]) for at in places if 0 < true[:, at].sum() < len(rows)]
        if columns:
            return columns
        of = f"{name} of {self.class_}" if self.class_ is not None else name
        sides = "the only answer is of one side" if len(rows) == 1 else f"the {len(rows):,} answers are all of one side"
        raise InputError(
            f"{of} is undefined: it sets inputs of a class against others, and {sides}. Label more inputs, or such as "
            "are likely to be on the other"
        )

    @abstractmethod
    def _base(self) -> Quantity:
        """The quantity without the class."""

    @abstractmethod
    def _area(self, scores: Floats, true: Members, weights: Floats) -> float:
        """The measure of one class."""

    @abstractmethod
    def _influence(self, scores: Floats, true: Members, weights: Floats) -> Floats:
        """The influence of each draw on it."""


def ranks(scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The weight of all draws with a lower score, and of those with the same one, for each draw."""
    distinct, place = np.unique(scores, return_inverse=True)
    same = np.bincount(place, weights=weights, minlength=len(distinct)).astype(np.float64)
    below = np.asarray(np.cumsum(same) - same, dtype=np.float64)
    return below[place], same[place]
