"""What a model's outputs mean: which one is the score, whether it is a logit, which class a column stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError, ModelError
from opmon.scoring.model import class_names, last_operator
from opmon.scoring.session import Tensor
from opmon.scoring.variables import sigmoid, softmax, variables_of
from opmon.types import Problem
from opmon.values import canonical_class, canonical_classes

Scores = Literal["auto", "probabilities", "logits"]
SCORES: tuple[str, ...] = ("auto", "probabilities", "logits")

_FLOATS = ("float", "double", "float16")
_LABELS = ("int64", "int32", "string")
_PROBABILITY_NODES = frozenset({"Softmax", "Sigmoid", "Normalizer", "Exp", "HardSigmoid"})
_LOGIT_NODES = frozenset({"Gemm", "MatMul", "Conv", "LinearRegressor", "GlobalAveragePool"})


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


def plan_outputs(
    model: Any,
    outputs: Sequence[Tensor],
    problem: Problem,
    classes: Sequence[Any] | None = None,
    output: str | None = None,
    scores: Scores = "auto",
) -> Outputs:
    """Find the score among the outputs, what it means, and the names of the classes."""
    if scores not in SCORES:
        raise InputError(f"scores must be one of {', '.join(SCORES)}; got {scores!r}")
    score = _score(outputs, output)
    if problem == "regression":
        if classes is not None:
            raise InputError("a regression model has no classes; leave classes out, or set problem: classification")
        return Outputs(problem, score.name, None, "value", None, None)
    label = next((item.name for item in outputs if item.kind in _LABELS and len(item.shape) <= 2), None)
    own = class_names(model)
    chosen = own if classes is None else _chosen(tuple(canonical_class(name) for name in classes), own)
    width = score.shape[1] if len(score.shape) == 2 else None
    if chosen is not None and width is not None and len(chosen) != max(width, 2):
        raise ModelError(
            f"output {score} has {width} columns, and there are {len(chosen)} classes ({', '.join(chosen[:10])}); give "
            f"classes with one name for each column, in their order"
        )
    meaning: Any = scores if scores != "auto" else _meaning(model, score, label is not None)
    return Outputs(problem, score.name, label, meaning, chosen, own)


def _score(outputs: Sequence[Tensor], wanted: str | None) -> Tensor:
    if wanted is not None:
        found = next((item for item in outputs if item.name == wanted), None)
        if found is None or found.kind not in _FLOATS:
            what = "has no output" if found is None else "does not give numbers in the output"
            raise ModelError(f"the model {what} {wanted!r}; it has: {_listed(outputs)}")
        return found
    numbers = [item for item in outputs if item.kind in _FLOATS]
    flat = [item for item in numbers if len(item.shape) <= 2]
    named = [item for item in flat if "prob" in item.name.lower()]
    for candidates in (named, flat, numbers):
        if len(candidates) == 1:
            return candidates[0]
    why = "gives no scores, only answers" if not numbers else "has several outputs that could be the score"
    raise ModelError(f"the model {why}; it has: {_listed(outputs)}. Set output to the one with the scores.")


def _chosen(given: tuple[str, ...], own: tuple[str, ...] | None) -> tuple[str, ...]:
    """The given names in the order of the model's columns."""
    if len(set(given)) != len(given):
        raise InputError(f"classes must differ from each other; got {', '.join(given)}")
    if own is None or set(given) == set(own):
        return own or given
    if len(given) != len(own) or not all(name.lstrip("-").isdigit() for name in own):
        raise ModelError(f"classes are {', '.join(given[:10])}, and the model's own are {', '.join(own[:10])}")
    return given


def _meaning(model: Any, score: Tensor, has_label: bool) -> str:
    """What the last operator says the scores are."""
    node = last_operator(model, score.name)
    kind = node.op_type if node is not None else None
    if kind == "LogSoftmax":
        return "log_probabilities"
    if kind == "Sigmoid" and not has_label and len(score.shape) == 2 and score.shape[1] != 1:
        return "independent"
    if kind in _PROBABILITY_NODES or has_label:
        return "probabilities"
    if kind in _LOGIT_NODES or (kind == "Add" and _adds_bias(model, node)):
        return "logits"
    raise ModelError(
        f"it cannot be told from the model's last operator ({kind}) whether {score.name!r} gives probabilities or "
        f"logits; set scores: probabilities or scores: logits"
    )


def _adds_bias(model: Any, node: Any) -> bool:
    """Whether one of the summands is a weight: else it may be an average of probabilities."""
    weights = {tensor.name for tensor in model.graph.initializer}
    weights |= {name for other in model.graph.node if other.op_type == "Constant" for name in other.output}
    return any(name in weights for name in node.input)


def _listed(outputs: Sequence[Tensor]) -> str:
    return "; ".join(map(str, outputs))
