"""Predictions and variables from the numbers that a model gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.problems import traits
from opmon.scoring.outputs.labels import Labels
from opmon.scoring.outputs.sets import HALF, scores_in, sets_of, variables_of_sets
from opmon.scoring.outputs.variables import ENOUGH, by_class, only_one, ranked, sigmoid, softmax, summed, variables_of
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Array, Numbers, Problem

Meaning = Literal["probabilities", "log_probabilities", "independent", "logits", "value"]
T = TypeVar("T", bound=np.generic)
Scores = Literal["auto", "probabilities", "logits", "independent"]
SCORES: tuple[str, ...] = ("auto", "probabilities", "logits", "independent")


@dataclass(frozen=True, slots=True)
class Predictions:
    """A model's answers for some inputs; ``valid`` is false where one is not a number, or not probabilities."""

    predictions: Array
    variables: Mapping[str, NDArray[np.float32]]
    valid: NDArray[np.bool_]
    unlike: int = 0
    """The number of labels that are not the class with the greatest score."""
    classes: tuple[str, ...] | None = None
    """The classes that a prediction can be; None for regression, and where they are not known."""
    activations: NDArray[np.float32] | None = None
    """The activations of the layer, one row per input, where they were asked for."""
    predicted: NDArray[np.int64] | None = None
    """The column of the predicted class, where activations were asked for and there are classes."""
    scores: Numbers | None = None
    """The probability of each of ``classes``, one row per input, where the scores are kept."""

    @classmethod
    def joined(cls, pieces: Sequence[Predictions]) -> Predictions:
        """The answers for all inputs, from those for some at a time."""
        first = pieces[0]
        if len(pieces) == 1:
            return first
        return cls(
            np.concatenate([piece.predictions for piece in pieces]),
            {name: np.concatenate([piece.variables[name] for piece in pieces]) for name in first.variables},
            np.concatenate([piece.valid for piece in pieces]),
            sum(piece.unlike for piece in pieces),
            first.classes,
            _stacked([piece.activations for piece in pieces]),
            _stacked([piece.predicted for piece in pieces]),
            _stacked([piece.scores for piece in pieces]),
        )


def _stacked(arrays: Sequence[NDArray[T] | None]) -> NDArray[T] | None:
    given = [array for array in arrays if array is not None]
    return np.concatenate(given) if given else None


@dataclass(frozen=True, slots=True)
class Outputs:
    """A plan for reading the outputs of one model. ``classes`` None: 0, 1, … as many as there are columns."""

    problem: Problem
    score: str
    labels: Labels | None
    meaning: Meaning
    classes: tuple[str, ...] | None
    own_classes: tuple[str, ...] | None = None
    """The names that the file itself has for the classes, in the same order."""
    spellings: Spellings = AS_SPELT
    """The other names of the classes."""
    threshold: float = HALF
    """The score from which on a class holds, where several may."""
    keeps_scores: bool = False
    """Whether the probabilities are given with the predictions: as many numbers for each input as there are classes."""
    reversed: bool = False
    """Whether the model gives the score of the second of two classes first."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.score,) if self.labels is None else (self.score, self.labels.output)

    def read(self, results: Sequence[Array]) -> Predictions:
        """Predictions and auxiliary variables from the values of ``names``."""
        score = np.asarray(results[0])
        holds = traits(self.problem)
        if holds.of_numbers:
            return self._numbers(score)
        if not holds.one_class:
            return self._several(score)
        probabilities = self._probabilities(score)
        with np.errstate(invalid="ignore", over="ignore"):
            total = summed(probabilities)
        valid: NDArray[np.bool_] = np.isfinite(total)
        if self.meaning == "probabilities":
            valid = self._are_probabilities(probabilities, total, valid)
        classes = self._classes(probabilities.shape[1])
        if not valid.all():
            probabilities = by_class(np.where(valid[:, None], probabilities, 0))
        ranking, unlike = ranked(probabilities), 0
        largest = ranking.column
        if self.labels is None:
            predictions = np.array(classes, dtype=np.str_).take(largest)
        else:
            predictions, columns = self._labelled(self.labels, np.asarray(results[1]), valid, classes)
            unlike, count = int((columns != largest)[valid].sum()), int(valid.sum())
            if not self.labels.proven and 2 * unlike > count >= ENOUGH:
                raise ModelError(self.unlike(unlike, count))
        return Predictions(
            predictions,
            variables_of(probabilities, ranking),
            valid,
            unlike,
            self._vocabulary(classes),
            scores=self._kept(probabilities, classes),
        )

    def ordered(self, scores: Array) -> Array:
        """The scores of the model, one column for each class, in the order of the classes."""
        return scores[:, ::-1] if self.reversed else scores

    def _several(self, score: Array) -> Predictions:
        """The classes that hold, each by its own score."""
        if sum(size > 1 for size in score.shape[1:]) > 1:
            raise ModelError(many_axes(self.score, score.shape))
        scores, valid = scores_in(score, self.score, self.meaning == "logits")
        classes = self._classes(scores.shape[1])
        kept = scores.astype(np.float32) if self.keeps_scores else None
        return Predictions(
            sets_of(scores, self.threshold, classes),
            variables_of_sets(scores, self.threshold),
            valid,
            0,
            classes,
            scores=kept,
        )

    def _kept(self, probabilities: Numbers, classes: tuple[str, ...]) -> Numbers | None:
        """The probabilities, where they are kept and it is known which class each of them is of."""
        named = self.keeps_scores and self._vocabulary(classes) == classes
        return np.ascontiguousarray(probabilities, np.float32) if named else None

    def _labelled(
        self, labels: Labels, values: Array, valid: NDArray[np.bool_], classes: tuple[str, ...]
    ) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
        """The labels by name and by column; what stands beside scores that are no numbers may be anything."""
        if values.size != len(valid):
            return labels.read(values, len(valid), classes)  # it says what is wrong
        names, columns = labels.read(values.reshape(-1)[valid], int(valid.sum()), classes)
        named, places = np.full(len(valid), "", names.dtype), np.full(len(valid), -1, np.int64)
        named[valid], places[valid] = names, columns
        return named, places

    def _vocabulary(self, classes: tuple[str, ...]) -> tuple[str, ...] | None:
        """The classes that a prediction can be; None where labels are text and only those that came are known."""
        if self.classes is not None or self.labels is None or self.labels.numbers:
            return classes
        return None if self.labels.names is None else tuple(dict.fromkeys(self.labels.names.values()))

    def renamed(self, own: NDArray[np.str_]) -> NDArray[np.str_]:
        """Classes as the model itself calls them in the names of ``classes``."""
        if self.own_classes is None or self.classes is None or set(self.own_classes) == set(self.classes):
            return self.spellings.named(own)
        names = dict(zip(self.own_classes, self.classes, strict=True))
        return np.array([names.get(name, name) for name in own.tolist()], dtype=np.str_)

    def unlike(self, count: int, of: int) -> str:
        """The error for labels that are not the class with the greatest score."""
        return unlike_words(count, of, self)

    def _numbers(self, score: Array) -> Predictions:
        values = score.reshape(len(score), -1)
        if values.shape[1] != 1:
            raise ModelError(
                f"output {self.score!r} gives {values.shape[1]} numbers for each input; a regression monitor watches "
                f"one. Export the model with that one output, or set problem: classification."
            )
        numbers = values[:, 0].astype(np.float64)
        return Predictions(numbers, {}, np.isfinite(numbers))

    def _probabilities(self, score: Array) -> Numbers:
        if sum(size > 1 for size in score.shape[1:]) > 1:
            raise ModelError(many_axes(self.score, score.shape))
        values = self.ordered(score.reshape(len(score), -1))
        if values.dtype == np.float16:
            values = values.astype(np.float32)
        single, values = values.shape[1] == 1, by_class(values)
        if self.meaning == "logits":
            values = sigmoid(values) if single else softmax(values)
        elif self.meaning == "log_probabilities":
            values = np.exp(values)
        elif self.meaning == "independent" and not single:
            values = only_one(values)
        return by_class(np.concatenate([1 - values, values], axis=1)) if single else values

    def _are_probabilities(self, values: Numbers, total: Numbers, finite: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows are probabilities; an error where half of many finite ones are not, as the output gives others."""
        off = np.abs(total - 1)
        good: NDArray[np.bool_] = (values.min(axis=1, initial=0) >= -1e-3) & (off <= 1e-2)
        if max(ENOUGH, 2 * int(good.sum())) <= int(finite.sum()):
            worst = int(np.where(finite, off, -1).argmax())
            shown = ", ".join(f"{value:.4g}" for value in values[worst, :4])
            raise ModelError(
                f"output {self.score!r} should give probabilities, and one row of it is {shown}… with the sum "
                f"{total[worst]:.4g}. Set scores: logits or scores: independent (a yes or no for each class) if that "
                f"is what it gives, or output to another of the outputs."
            )
        return good

    def _classes(self, columns: int) -> tuple[str, ...]:
        if self.classes is None:
            return tuple(str(column) for column in range(columns))
        if len(self.classes) != columns:
            raise ModelError(
                f"there are {len(self.classes)} classes ({', '.join(self.classes[:5])}…), and output {self.score!r} "
                f"gives {columns} columns; give classes with one name for each column, in their order"
            )
        return self.classes


def unlike_words(count: int, of: int, outputs: Outputs | None = None) -> str:
    """The error for answers that are not the class with the greatest score."""
    label, score = "", ""
    if outputs is not None:
        label, score = "" if outputs.labels is None else f" ({outputs.labels.output!r})", f" ({outputs.score!r})"
    return (
        f"the model's label{label} is not the class with the greatest score{score} for {count} of {of} inputs: right "
        f"where a threshold or votes decide, wrong where classes are in another order than the columns or output is "
        f"not the score"
    )


def many_axes(score: str, shape: Sequence[int | None]) -> str:
    """The error for scores that are not one for each class."""
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    return (
        f"output {score!r} has the shape [{sizes}], and a monitor takes one score for each class: [inputs, classes]. A "
        f"model that answers for each pixel or each word is not watched; set output to another, or export one answer "
        f"for each input."
    )
