"""Production's own predictions beside those of the registered model: the ones that users saw are judged.

Production must speak of the model's own classes. Anything else is told before a label is asked for: a class in other
words would count as wrong on every input, and a column that is no prediction at all as a model that has failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.jobs.counting import bounded
from opmon.problems import Problem, traits
from opmon.scoring.inputs.classes import class_names, decided, is_said, plain_numbers
from opmon.scoring.inputs.columns import decoded
from opmon.scoring.inputs.sets import logged_sets
from opmon.scoring.outputs.vocabulary import most_frequent, other_words, strays_of, too_many
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Array
from opmon.wording import percent

_SAYING = 5
"""The fewest different predictions of which a skew is reported."""
_TELLING = 50
"""The fewest predictions by which agreement is told from chance."""


@dataclass(frozen=True)
class Skew:
    """Counts of how production's predictions differ from the registered model's; those of parts can be added up."""

    column: str
    logged: int
    """The number of predictions that production logged."""
    differs: int
    """The number of those that differ from the registered model's answer; a number by more than rounding."""
    apart: int
    """The number of those that differ widely: a number by more than the model's answers usually differ."""
    said: Mapping[str, int] = field(default_factory=dict)
    """Production's predictions that can be compared, with their counts; of many different words the most frequent."""
    own: Mapping[str, int] = field(default_factory=dict)
    """The model's predictions for the same inputs, with their counts."""
    strays: Mapping[str, int] = field(default_factory=dict)
    """Production's predictions that are none of the model's classes, with their counts."""
    classes: tuple[str, ...] | None = None
    middle: tuple[float, float] | None = None
    """The medians of production's and of the model's numbers."""

    def __add__(self, other: Skew) -> Skew:
        return replace(
            self,
            logged=self.logged + other.logged,
            differs=self.differs + other.differs,
            apart=self.apart + other.apart,
            said=_added(self.said, other.said),
            own=_added(self.own, other.own),
            strays=_added(self.strays, other.strays),
            classes=self.classes or other.classes,
        )

    @property
    def compared(self) -> int:
        """The number of predictions that can be compared with the model's."""
        return self.logged - sum(self.strays.values())

    @property
    def share(self) -> float | None:
        """The share of production's predictions that the registered model answers otherwise; None without any."""
        return self.differs / self.compared if self.compared else None

    @property
    def by_chance(self) -> float | None:
        """The share of predictions that have nothing to do with the model's; None where it cannot be told."""
        if self.classes is None or self.compared < _TELLING:
            return None
        return 1 - sum(count * self.own.get(name, 0) for name, count in self.said.items()) / self.compared**2

    @property
    def losses(self) -> Counter[str]:
        """Why inputs whose prediction is a stray cannot be judged, and how many for each reason."""
        return Counter({_stray(self.column, name): count for name, count in self.strays.items()})

    def require(self, max_skew: float) -> None:
        """Raise an error where production's classes are not the model's, or its answers differ too often."""
        if too_many(sum(self.strays.values()), self.logged):
            raise SourceError(self._other_words())
        apart = self.apart / self.compared if self.compared else 0.0
        if apart > max_skew and self.apart >= _SAYING:
            raise SourceError(self._other_answers(apart, max_skew))

    def _other_words(self) -> str:
        what = f"column {self.column!r} holds predictions that are"
        words = other_words(what, self.strays, self.logged, self.classes or ())
        return (
            f"{words} Say what each is called with 'classes', such as classes: {{{_example(self.classes)}}}, or name "
            f"the column that holds the model's own names; without prediction in 'columns' the model's own answers "
            f"are judged"
        )

    def _other_answers(self, apart: float, max_skew: float) -> str:
        if self.middle is not None:
            said, own = self.middle
            what = f"are far from the registered model's answers (in the middle {said:.4g}, the model's {own:.4g})"
        else:
            said_, own_ = most_frequent(Counter(self.said)), most_frequent(Counter(self.own))
            what = f"are not the registered model's answers (production: {said_}; the model: {own_})"
        return (
            f"the predictions in column {self.column!r} {what} on {percent(apart)} of {self.compared} inputs, and "
            f"round.max_skew is {max_skew:g}. Is it the right column, does it speak of the same inputs, in the same "
            f"unit or order of classes, and was it this model version (columns.model_version)? Correct 'columns', or "
            f"raise the limit"
        )


def served(
    column: str,
    logged: pa.Array,
    own: Array,
    classes: tuple[str, ...] | None,
    problem: Problem,
    spellings: Spellings = AS_SPELT,
    threshold: float | None = None,
) -> tuple[pa.Table, Skew] | None:
    """Production's predictions in ``column`` beside the model's ``own``; None where none was logged.

    The table has a row for each: the ``prediction`` that is judged, which is production's where it was ``logged``, and
    whether it is a ``stray``, which is none of the model's classes.

    With a ``threshold`` the column holds numbers: from it on the second of two classes was answered.
    """
    logged = decoded(logged)
    holds = traits(problem)
    if holds.of_classes and not holds.one_class:
        return _served_sets(column, logged, own, classes, spellings)
    known = is_said(column, logged)
    if not known.any():
        return None
    given = logged.filter(pa.array(known))
    if holds.of_numbers:
        said = own.astype(np.float64)
        said[known] = plain_numbers(column, given)
        return _table(said, known, np.zeros(len(own), dtype=bool)), skew_of_numbers(column, known, said, own)
    said = own.astype(object)
    said[known] = (
        class_names(column, given, spellings)
        if threshold is None
        else decided(column, plain_numbers(column, given), threshold, classes)
    )
    strays = known & strays_of(said, classes)
    compared = known & ~strays
    differs = int((compared & (said != own.astype(object))).sum())
    words = (_counted(said[compared]), _counted(own[compared]), _counted(said[strays]))
    return _table(said, known, strays), Skew(column, int(known.sum()), differs, differs, *words, classes)


def _served_sets(
    column: str, logged: pa.Array, own: Array, classes: tuple[str, ...] | None, spellings: Spellings
) -> tuple[pa.Table, Skew] | None:
    """The same for several classes at once; a row that names anything else is a stray."""
    found = logged_sets(column, logged, classes, spellings)
    there = np.asarray(logged.is_valid())
    if not there.any():
        return None
    strays, known = there & ~found.known, found.known
    said = np.where(known, found.sets, own)
    differs = int((known & (said != own)).sum())
    words = (_counted(said[known]), _counted(own[known]), dict(Counter(found.strays.values())))
    lost = int(strays.sum()) - len(found.strays)
    more = {"something that is no list of classes": lost} if lost else {}
    return _table(said, known, strays), Skew(
        column, int(there.sum()), differs, differs, *words[:2], words[2] | more, classes
    )


def _table(said: Array, logged: NDArray[np.bool_], strays: NDArray[np.bool_]) -> pa.Table:
    return pa.table({"prediction": said, "logged": logged, "stray": strays})


def skew_of_numbers(column: str, known: NDArray[np.bool_], said: NDArray[np.float64], own: NDArray[np.float64]) -> Skew:
    """The skew of numbers; a difference of a hundredth of the spread is rounding, in the log or by float32.

    The spread is that of all the model's answers: of a round in parts, those of all parts together are given.
    """
    spread = float(np.abs(own - np.median(own)).mean())
    distance = np.abs(said - own)
    close = np.isclose(said, own, rtol=1e-5, atol=1e-8)
    differs, apart = (int((known & ~close & (distance > share * spread)).sum()) for share in (0.01, 1.0))
    middle = (float(np.median(said[known])), float(np.median(own[known])))
    return Skew(column, int(known.sum()), differs, apart, middle=middle)


def _counted(names: Array) -> dict[str, int]:
    return dict(bounded(Counter(map(str, names.tolist()))))


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(bounded(Counter(one) + Counter(other)))


def _stray(column: str, name: str) -> str:
    return f"column {column!r} holds {name!r}, which is none of the model's classes"


def _example(classes: tuple[str, ...] | None) -> str:
    """The first two classes as they would be given with spellings."""
    return ", ".join(f"{name}: {number}" for number, name in enumerate((classes or ("paid", "default"))[:2])) + (
        "" if classes is None or len(classes) < 3 else ", …"
    )
