"""Which of a model's outputs is the score, and what it means: from the graph, or as the user says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opmon.errors import InputError, ModelError
from opmon.scoring.graph.file import class_names, last_operator
from opmon.scoring.outputs.meaning import SCORES, Outputs, Scores
from opmon.scoring.session import Tensor
from opmon.types import Problem
from opmon.values import canonical_class

_FLOATS = ("float", "double", "float16")
_LABELS = ("int64", "int32", "string")
_PROBABILITY_NODES = frozenset({"Softmax", "Sigmoid", "Normalizer", "Exp", "HardSigmoid"})
_LOGIT_NODES = frozenset({"Gemm", "MatMul", "Conv", "LinearRegressor", "GlobalAveragePool"})


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
