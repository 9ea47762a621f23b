"""What production answered, beside what the registered model answers: that which users saw is judged.

Production must speak of the model's own classes. Anything else is told before a label is asked for: a class in other
words would count as wrong on every input, and a column that is no prediction at all as a model that has failed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.config import MonitorSettings
from opmon.errors import InputError, SourceError
from opmon.scoring.inputs.columns import decoded
from opmon.scoring.outputs.vocabulary import other_words, strays_of, told, too_many
from opmon.spellings import AS_SPELT, Spellings
from opmon.values import canonical_classes
from opmon.wording import percent

_SAYING = 5
"""So many predictions must differ before a skew says anything."""
_TELLING = 50
"""With fewer predictions than this, chance is not spoken of."""


@dataclass(frozen=True, eq=False)
class Served:
    """Production's predictions and the model's, of the same inputs."""

    column: str
    said: NDArray[Any]
    """What is judged: production's own where it was logged."""
    own: NDArray[Any]
    logged: NDArray[np.bool_]
    differs: NDArray[np.bool_]
    """Where the registered model answers otherwise; in regression by more than rounding."""
    apart: NDArray[np.bool_]
    """Where it answers quite otherwise: in regression by more than its answers usually differ from each other."""
    strays: NDArray[np.bool_]
    """Where production's is none of the model's classes."""
    classes: tuple[str, ...] | None = None

    @property
    def skew(self) -> float | None:
        """The share of production's predictions that the registered model answers otherwise; None without any."""
        return _share(self.differs, self.logged & ~self.strays)

    @property
    def by_chance(self) -> float | None:
        """The skew of predictions that have nothing to do with the model's; None where it cannot be told."""
        known = self.logged & ~self.strays
        if self.classes is None or known.sum() < _TELLING:
            return None
        said, own = (Counter(values[known].tolist()) for values in (self.said, self.own))
        return 1 - sum(said[name] * own[name] for name in said) / int(known.sum()) ** 2

    def require(self, max_skew: float) -> None:
        """An error where production speaks of other classes than the model, or answers otherwise too often."""
        strays = int(self.strays.sum())
        if too_many(strays, int(self.logged.sum())):
            raise SourceError(self._other_words())
        apart = _share(self.apart, self.logged & ~self.strays)
        if apart is not None and apart > max_skew and self.apart.sum() >= _SAYING:
            raise SourceError(self._other_answers(apart, max_skew))

    def stray(self, row: int) -> str:
        """Why the prediction of a row cannot be judged."""
        return f"column {self.column!r} holds {self.said[row]!r}, which is none of the model's classes"

    def _other_words(self) -> str:
        what = f"column {self.column!r} holds predictions that are"
        words = other_words(what, self.said[self.strays].tolist(), int(self.logged.sum()), self.classes or ())
        return (
            f"{words} Say what each is called with 'classes', such as classes: {{{_example(self.classes)}}}, or name "
            f"the column that holds the model's own names; without prediction in 'columns' the model's own answers "
            f"are judged"
        )

    def _other_answers(self, apart: float, max_skew: float) -> str:
        known = self.logged & ~self.strays
        if self.classes is None and self.said.dtype.kind == "f":
            said, own = (np.median(values[known]) for values in (self.said, self.own))
            what = f"are far from the registered model's answers (in the middle {said:.4g}, the model's {own:.4g})"
        else:
            said, own = (told(Counter(values[known].tolist())) for values in (self.said, self.own))
            what = f"are not the registered model's answers (production: {said}; the model: {own})"
        return (
            f"the predictions in column {self.column!r} {what} on {percent(apart)} of {int(known.sum())} inputs, and "
            f"round.max_skew is {max_skew:g}. Is it the right column, does it speak of the same inputs, in the same "
            f"unit or order of classes, and was it this model version (columns.model_version)? Correct 'columns', or "
            f"raise the limit"
        )


def served_of(
    settings: MonitorSettings,
    logged: pa.Array | None,
    where: NDArray[np.int64],
    own: NDArray[Any],
    classes: tuple[str, ...] | None,
) -> Served | None:
    """Production's predictions of the inputs ``where`` of a log, beside the model's; None where it logs none."""
    name = settings.columns.prediction
    if logged is None or name is None or not len(where):
        return None
    threshold = settings.columns.threshold
    return served(name, logged.take(pa.array(where)), own, classes, settings.problem, settings.spellings, threshold)


def served(
    column: str,
    logged: pa.Array,
    own: NDArray[Any],
    classes: tuple[str, ...] | None,
    problem: str,
    spellings: Spellings = AS_SPELT,
    threshold: float | None = None,
) -> Served | None:
    """Production's predictions in ``column`` beside the model's ``own``; None where none was logged.

    With a ``threshold`` the column holds numbers: from it on the second of two classes was answered.
    """
    logged = decoded(logged)
    known = _is_said(column, logged)
    if not known.any():
        return None
    given = logged.filter(pa.array(known))
    if problem == "regression":
        return _numbers_served(column, known, _numbers(column, given), own.astype(np.float64))
    said = own.astype(object)
    said[known] = (
        spellings.named(_names(column, given))
        if threshold is None
        else _decided(_numbers(column, given), threshold, classes, column)
    )
    differs = known & (said != own.astype(object))
    strays = known & strays_of(said, classes)
    return Served(column, said, own, known, differs, differs, strays, classes)


def _numbers_served(
    column: str, known: NDArray[np.bool_], given: NDArray[np.float64], own: NDArray[np.float64]
) -> Served:
    """What differs by a hundredth of the spread was rounded when it was logged, or by float32."""
    said = own.copy()
    said[known] = given
    spread = float(np.abs(own - np.median(own)).mean())
    distance = np.abs(said - own)
    close = np.isclose(said, own, rtol=1e-5, atol=1e-8)
    differs, apart = (known & ~close & (distance > share * spread) for share in (0.01, 1.0))
    return Served(column, said, own, known, differs, apart, np.zeros(len(own), dtype=bool))


def _is_said(column: str, logged: pa.Array) -> NDArray[np.bool_]:
    """Where production logged a prediction: blank text and NaN are none."""
    if pa.types.is_nested(logged.type) or pa.types.is_binary(logged.type):
        raise SourceError(
            f"column {column!r} is {logged.type}, and a prediction is text, a number or a truth value; "
            f"correct prediction in 'columns'"
        )
    known = logged.is_valid()
    if pa.types.is_floating(logged.type):
        known = pc.and_(known, pc.fill_null(pc.is_finite(logged), False))
    elif pa.types.is_string(logged.type) or pa.types.is_large_string(logged.type):
        known = pc.and_(known, pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(logged), ""), False))
    return np.asarray(known)


def _example(classes: tuple[str, ...] | None) -> str:
    """How the first two classes would be given with spellings."""
    return ", ".join(f"{name}: {number}" for number, name in enumerate((classes or ("paid", "default"))[:2])) + (
        "" if classes is None or len(classes) < 3 else ", …"
    )


def _names(column: str, given: pa.Array) -> NDArray[Any]:
    try:
        return canonical_classes(given.to_pandas().to_numpy(dtype=object))
    except InputError as exc:
        raise SourceError(f"column {column!r} cannot be the prediction: {exc}; correct 'columns'") from exc


def _decided(
    numbers: NDArray[np.float64], threshold: float, classes: tuple[str, ...] | None, column: str
) -> NDArray[np.str_]:
    """The class that production answered, from the number that decided it."""
    if classes is None or len(classes) != 2:
        have = "they are not known" if classes is None else f"there are {len(classes)}"
        raise SourceError(
            f"columns.threshold decides between two classes, and {have}; name both in classes, or the column with the "
            f"class itself in columns.prediction"
        )
    shares = 0 <= threshold <= 1
    outside = (numbers < 0) | (numbers > 1)
    if shares and outside.any():
        raise SourceError(
            f"column {column!r} holds {numbers[outside][0]:g}, which is no probability, and columns.threshold is "
            f"{threshold:g}; correct columns.prediction, or give the threshold of that score"
        )
    return np.array(classes, dtype=np.str_)[(numbers >= threshold).astype(np.int64)]


def _numbers(column: str, given: pa.Array) -> NDArray[np.float64]:
    try:
        numbers = pc.cast(given, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
        raise SourceError(f"column {column!r} does not hold numbers ({exc}); correct 'columns'") from exc
    if not np.isfinite(numbers).all():
        odd = numbers[~np.isfinite(numbers)][0]
        raise SourceError(f"column {column!r} holds {odd}; a prediction is a finite number")
    return np.asarray(numbers)


def _share(which: NDArray[np.bool_], among: NDArray[np.bool_]) -> float | None:
    return float(which[among].mean()) if among.any() else None
