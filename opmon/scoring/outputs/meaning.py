"""What a model's outputs mean: predictions and variables from the numbers that it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.scoring.outputs.variables import sigmoid, softmax, variables_of
from opmon.types import Problem
from opmon.values import canonical_classes

Scores = Literal["auto", "probabilities", "logits"]
SCORES: tuple[str, ...] = ("auto", "probabilities", "logits")


@dataclass(frozen=True, slots=True)
class Answers:
    """What the model said of some inputs; ``valid`` is false where its answer is not a number, or no probabilities."""

    predictions: NDArray[Any]
    variables: Mapping[str, NDArray[np.float32]]
    valid: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Outputs:
    """How to read the outputs of one model. ``classes`` None: 0, 1, … as many as there are columns."""

    problem: Problem
    score: str
    label: str | None
    meaning: Literal["probabilities", "log_probabilities", "independent", "logits", "value"]
    classes: tuple[str, ...] | None
    own_classes: tuple[str, ...] | None
    """The names that the file itself has for the classes, in the same order."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.score,) if self.label is None else (self.score, self.label)

    def read(self, results: Sequence[Any]) -> Answers:
        """Predictions and auxiliary variables from the values of ``names``."""
        score = np.asarray(results[0])
        if self.problem == "regression":
            return self._numbers(score)
        probabilities = self._probabilities(score)
        valid = np.isfinite(probabilities).all(axis=1)
        if self.meaning == "probabilities":
            valid[valid] = self._are_probabilities(probabilities[valid])
        classes = self._classes(probabilities.shape[1])
        if self.label is None:
            predictions = np.array(classes, dtype=np.str_)[np.where(valid, probabilities.argmax(axis=1), 0)]
        else:
            predictions = self._named(np.asarray(results[1]).reshape(-1), classes)
        probabilities = np.where(valid[:, None], probabilities, 0)
        return Answers(predictions, variables_of(probabilities), valid)

    def _numbers(self, score: NDArray[Any]) -> Answers:
        values = score.reshape(len(score), -1)
        if values.shape[1] != 1:
            raise ModelError(
                f"output {self.score!r} gives {values.shape[1]} numbers for each input; a regression monitor watches "
                f"one. Export the model with that one output, or set problem: classification."
            )
        numbers = values[:, 0].astype(np.float64)
        return Answers(numbers, {}, np.isfinite(numbers))

    def _probabilities(self, score: NDArray[Any]) -> NDArray[np.floating[Any]]:
        values = score.reshape(len(score), -1)
        if values.dtype == np.float16:
            values = values.astype(np.float32)
        single = values.shape[1] == 1
        if self.meaning == "logits":
            values = sigmoid(values) if single else softmax(values)
        elif self.meaning == "log_probabilities":
            values = np.exp(values)
        return np.concatenate([1 - values, values], axis=1) if single else values

    def _are_probabilities(self, values: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
        """Which rows are; an error where half of them are not: it is then not what the output gives."""
        total = values.sum(axis=1)
        good: NDArray[np.bool_] = (values.min(axis=1, initial=0) >= -1e-3) & (np.abs(total - 1) <= 1e-2)
        if len(good) and good.mean() <= 0.5:
            worst = int(np.abs(total - 1).argmax())
            shown = ", ".join(f"{value:.4g}" for value in values[worst, :4])
            raise ModelError(
                f"output {self.score!r} should give probabilities, and one row of it is {shown}… with the sum "
                f"{total[worst]:.4g}. Set scores: logits if that is what it gives, or output to another of the outputs."
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

    def _named(self, labels: NDArray[Any], classes: tuple[str, ...]) -> NDArray[np.str_]:
        """The model's own labels in the names of ``classes``."""
        texts = canonical_classes(labels)
        known = dict(zip(self.own_classes or (), classes, strict=False))
        names: dict[str, str] = {}
        for text in np.unique(texts).tolist():
            if text in known:
                names[text] = known[text]
            elif text in classes or (self.classes is None and labels.dtype.kind not in "iu"):
                names[text] = text
            elif text.isdigit() and int(text) < len(classes):
                names[text] = classes[int(text)]
            else:
                raise ModelError(
                    f"the model answers {text!r}, which is none of its classes {', '.join(classes[:10])}; give classes "
                    f"in the order of the columns of {self.score!r}"
                )
        if all(old == new for old, new in names.items()):
            return texts
        different, which = np.unique(texts, return_inverse=True)
        return np.array([names[text] for text in different.tolist()], dtype=np.str_)[which]
