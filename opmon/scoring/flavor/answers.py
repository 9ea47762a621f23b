"""What a model's own answers mean: labels, scores or both become predictions in the words of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.problems import traits
from opmon.scoring.inputs.classes import class_names, is_said
from opmon.scoring.inputs.sets import logged_sets
from opmon.scoring.outputs.meaning import Meaning, Outputs, Scores
from opmon.scoring.outputs.planning import chosen_classes
from opmon.scoring.outputs.variables import ENOUGH
from opmon.spellings import Spellings
from opmon.types import Array, Document, Numbers, Problem
from opmon.values import canonical_class

Read: TypeAlias = tuple[
    Array, NDArray[np.bool_], dict[str, NDArray[np.float32]], int, tuple[str, ...] | None, Numbers | None
]
"""Predictions, which of them hold, variables, how many differ from their scores, the classes, and the scores."""
LABEL = "the model's label"
"""What a model answers with, as errors call it."""


@dataclass(frozen=True)
class AnswerReader:
    """Reads tables with ``labels``, ``scores`` or both."""

    problem: Problem
    classes: tuple[str, ...] | None
    spellings: Spellings
    meaning: Scores
    threshold: float
    keeps_scores: bool
    own: tuple[str, ...] | None
    """The model's own names of its classes, where it says them."""
    shares: bool = False
    """Whether it is known that its labels are probabilities of the second of two classes."""

    def read(self, table: pa.Table, header: Document) -> Read:
        """What the answers are."""
        if traits(self.problem).of_numbers:
            predictions, good = self._numbers(table)
            return predictions, good, {}, 0, None, None
        return self._classified(table, header) if traits(self.problem).one_class else self._several(table, header)

    def known(self) -> tuple[str, ...] | None:
        """The names of the classes in the order of the model's scores, where they are known."""
        return self._chosen(self.own or None)

    def gives_shares(self, table: pa.Table) -> bool:
        """Whether the labels are probabilities of the second of two classes and no names.

        Fractions are. Zeros and ones alone are where it is known of others, or where two classes have other names.
        """
        if self.shares:
            return True
        if not traits(self.problem).one_class or "labels" not in table.column_names or "scores" in table.column_names:
            return False
        labels = table["labels"].combine_chunks()
        if not pa.types.is_floating(labels.type):
            return False
        values = labels.to_numpy(zero_copy_only=False)
        known = values[np.isfinite(values)]
        if not len(known) or ((known < 0) | (known > 1)).any():
            return False
        return bool((known != np.floor(known)).any()) or self._are_no_names(known)

    def _are_no_names(self, numbers: Array) -> bool:
        """Whether there are two classes, and numbers are what neither is called."""
        classes = self.known()
        if classes is None or len(classes) != 2:
            return False
        called = {self.spellings.name(canonical_class(number)) for number in np.unique(numbers).tolist()}
        return called.isdisjoint((*classes, *(self.own or ())))

    def _chosen(self, own: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if own is None:
            return self.classes
        if self.classes is None:
            return own
        return chosen_classes(self.classes, own, self.spellings)

    def _numbers(self, table: pa.Table) -> tuple[Array, NDArray[np.bool_]]:
        name = "labels" if "labels" in table.column_names else "scores"
        column = table[name].combine_chunks()
        if pa.types.is_fixed_size_list(column.type):
            raise ModelError(
                f"the model gives {column.type.list_size} numbers for each input; a regression monitor watches one"
            )
        try:
            values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
            raise ModelError(f"the model does not answer with numbers ({exc}); set problem: classification") from exc
        return values, np.isfinite(values)

    def _several(self, table: pa.Table, header: Document) -> Read:
        """The classes that hold, by the model's scores or yes and no for each, or as it lists them."""
        classes = self._classes(header)
        if "scores" in table.column_names:
            return self._by("scores", _matrix(table), "logits" if self.meaning == "logits" else "independent", classes)
        said = logged_sets(LABEL, table["labels"].combine_chunks(), classes, self.spellings)
        return said.sets, said.known, {}, 0, classes, None

    def _classified(self, table: pa.Table, header: Document) -> Read:
        """The class that the model names, or else the one with the highest score."""
        classes, meaning = self._classes(header), "probabilities" if self.meaning == "auto" else self.meaning
        scored = self._by("scores", _matrix(table), meaning, classes) if "scores" in table.column_names else None
        if "labels" not in table.column_names:
            if scored is None:
                raise ModelError("the model gives neither a label nor scores")
            return scored
        labels = table["labels"].combine_chunks()
        if scored is None and self.shares and _are_numbers(labels.type):
            numbers = labels if pa.types.is_floating(labels.type) else labels.cast(pa.float64())
            return self._by("labels", numbers.to_numpy(zero_copy_only=False), "probabilities", classes)
        known = _known(labels)
        names = self._named(class_names(LABEL, labels.filter(pa.array(known)), self.spellings))
        predictions = np.full(table.num_rows, "", names.dtype if len(names) else np.dtype("<U1"))
        predictions[known] = names
        if scored is None:
            return predictions, known, {}, 0, classes, None
        best, good, variables, _, classes, kept = scored
        if header.get("classes") is not None and self.classes is None:
            _require_one(names, classes)
        unlike = int((best != predictions)[good & known].sum())
        return predictions, good & known, variables, unlike, classes, kept

    def _classes(self, header: Document) -> tuple[str, ...] | None:
        """The names of the classes in the order of the scores, as the answers or else the model says them."""
        own = header.get("classes")
        return self.known() if own is None else self._chosen(tuple(canonical_class(name) for name in own))

    def _by(self, name: str, scores: Array, meaning: Meaning, classes: tuple[str, ...] | None) -> Read:
        """What the scores in the column ``name`` tell."""
        outputs = Outputs(
            self.problem, name, None, meaning, classes, threshold=self.threshold, keeps_scores=self.keeps_scores
        )
        found = outputs.read([scores])
        return found.predictions, found.valid, dict(found.variables), 0, found.classes, found.scores

    def _named(self, names: NDArray[np.str_]) -> NDArray[np.str_]:
        """The model's own names, or numbers of its classes, as the configuration calls them."""
        own, chosen = self.own or (), self.known()
        different = set(np.unique(names).tolist())
        if not own and chosen is not None and not different <= set(chosen) and all(map(str.isdigit, different)):
            own = tuple(map(str, range(len(chosen))))  # numbers of classes
        if not own or chosen is None or set(own) == set(chosen):
            return names
        called = dict(zip(own, chosen, strict=True))
        return np.array([called.get(name, name) for name in names.tolist()], dtype=np.str_)


def _require_one(names: NDArray[np.str_], classes: tuple[str, ...] | None) -> None:
    """An error where none of many labels of the model is one of its classes, which are called as its scores are.

    A few labels may all be strays: a model that says ``unsure`` now and then is alone with it in a small batch.
    """
    if classes is None or len(names) < ENOUGH or not set(names.tolist()).isdisjoint(classes):
        return
    raise ModelError(
        f"the model answers {str(names[0])!r}, and its scores are called {', '.join(classes[:10])}: say in classes "
        f"which of them is which answer's, as in classes: {{{names[0]}: NAME OF ITS SCORE, …}}"
    )


def _matrix(table: pa.Table) -> Array:
    """The scores, a row for each input."""
    scores = table["scores"].combine_chunks()
    return np.asarray(scores.flatten()).reshape(table.num_rows, scores.type.list_size)


def _known(labels: pa.Array) -> NDArray[np.bool_]:
    """Which inputs have a label: NaN and blank text are none, as in a log."""
    return np.asarray(labels.is_valid()) if pa.types.is_binary(labels.type) else is_said(LABEL, labels)


def _are_numbers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
