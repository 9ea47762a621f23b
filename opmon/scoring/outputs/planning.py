"""A plan for reading a model's outputs: which is the score and what it means, by the graph or as the user says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opmon.errors import InputError, ModelError
from opmon.problems import traits
from opmon.scoring.graph.file import class_names, classifier_labels, last_operator, metadata_of
from opmon.scoring.outputs.labels import KINDS, plan_labels, several
from opmon.scoring.outputs.meaning import SCORES, Meaning, Outputs, Scores, many_axes
from opmon.scoring.outputs.origin import Origin, origin_of
from opmon.scoring.session import Tensor
from opmon.spellings import AS_SPELT, Classes, Spellings
from opmon.types import Problem
from opmon.values import canonical_class

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_STATED: tuple[Meaning, ...] = ("probabilities", "logits", "independent")
_FLOATS = ("float", "double", "float16")
_PROBABILITY_NODES = frozenset({"Softmax", "Sigmoid", "Normalizer", "Exp", "HardSigmoid"})
_LOGIT_NODES = frozenset({"Gemm", "MatMul", "Conv", "LinearRegressor", "GlobalAveragePool"})
_MADE_PROBABILITIES = (b"SOFTMAX", b"LOGISTIC", b"SOFTMAX_ZERO")


def plan_outputs(
    model: ModelProto,
    outputs: Sequence[Tensor],
    problem: Problem,
    classes: Classes | None = None,
    output: str | None = None,
    scores: Scores = "auto",
) -> Outputs:
    """Find the score among the outputs, what it means, and the names of the classes.

    ``classes`` are named in the order of the score's columns, or each with its spellings: by them the model's own names
    are known whatever their order.
    """
    if scores not in SCORES:
        raise InputError(f"scores must be one of {', '.join(SCORES)}; got {scores!r}")
    score = _score(outputs, output)
    if traits(problem).of_numbers:
        if classes is not None:
            raise InputError("a regression model has no classes; leave classes out, or set problem: classification")
        return Outputs(problem, score.name, None, "value", None, None)
    _require_a_row(score)
    label = _label(outputs) if traits(problem).one_class else None
    width = score.shape[1] if len(score.shape) == 2 else None
    origin = None if label is None else _origin(model, label, width)
    own = _own(model, score, origin)
    spellings = Spellings.of(classes) if isinstance(classes, Mapping) else AS_SPELT
    chosen = own if classes is None else chosen_classes(tuple(map(canonical_class, classes)), own, spellings)
    if chosen is not None and width is not None and len(chosen) != max(width, 2 if traits(problem).one_class else 1):
        raise ModelError(
            f"output {score} has {width} columns, and there are {len(chosen)} classes ({', '.join(chosen[:10])}); give "
            f"classes with one name for each column, in their order"
        )
    labels = None if label is None else plan_labels(label.name, label.kind, origin, chosen, own, spellings)
    if not traits(problem).one_class:
        return Outputs(
            problem, score.name, None, "logits" if scores == "logits" else "independent", chosen, own, spellings
        )
    meaning = scores if scores != "auto" else _meaning(model, score, labels is not None)
    turned = _is_reversed(last_operator(model, score.name))
    return Outputs(problem, score.name, labels, meaning, chosen, own, spellings, reversed=turned)


def _score(outputs: Sequence[Tensor], wanted: str | None) -> Tensor:
    if wanted is not None:
        named = next((item for item in outputs if item.name == wanted), None)
        if named is None or named.kind not in _FLOATS:
            what = "has no output" if named is None else "does not give numbers in the output"
            raise ModelError(f"the model {what} {wanted!r}; it has: {_listed(outputs)}")
        return named
    numbers = [item for item in outputs if item.kind in _FLOATS]
    flat = [item for item in numbers if len(item.shape) <= 2]
    by_name = [item for item in flat if "prob" in item.name.lower()]
    for candidates in (by_name, flat, numbers):
        if len(candidates) == 1:
            return candidates[0]
    why = "gives no scores, only answers" if not numbers else "has several outputs that could be the score"
    raise ModelError(f"the model {why}; it has: {_listed(outputs)}. Set output to the one with the scores.")


def _require_a_row(score: Tensor) -> None:
    if sum((size or 1) > 1 for size in score.shape[1:]) > 1:
        raise ModelError(many_axes(score.name, score.shape))


def _label(outputs: Sequence[Tensor]) -> Tensor | None:
    """The output with the model's own label."""
    labels = [item for item in outputs if item.kind in KINDS]
    for label in labels:
        if not any((size or 1) > 1 for size in label.shape[1:]):
            return label
    if labels:
        raise ModelError(several(labels[0].name, labels[0].shape))
    return None


def _origin(model: ModelProto, label: Tensor, width: int | None) -> Origin | None:
    """The origin of the label output, unless its classes are others than the score's columns."""
    origin = origin_of(model, label.name)
    if origin is None or origin.names is None or width is None or len(origin.names) == max(width, 2):
        return origin
    return None


def _own(model: ModelProto, score: Tensor, origin: Origin | None) -> tuple[str, ...] | None:
    """The names that the file has for the classes: in its metadata, its labels, or the node with the scores."""
    stated, labels = class_names(model), None if origin is None else origin.names
    if labels is not None and (stated is None or set(stated) == set(labels)):
        return labels
    if stated is not None or origin is not None:
        return stated
    node = last_operator(model, score.name)
    while node is not None and node.op_type == "Normalizer":
        node = last_operator(model, node.input[0])
    return (classifier_labels(node) or None) if node is not None else None


def chosen_classes(given: tuple[str, ...], own: tuple[str, ...] | None, spellings: Spellings) -> tuple[str, ...]:
    """The given names in the order of the model's columns."""
    if len(set(given)) != len(given):
        raise InputError(f"classes must differ from each other; got {', '.join(given)}")
    spelt = None if own is None else spellings.all_named(own, given)
    if own is None or spelt is not None:
        return spelt or given
    if len(given) != len(own) or not all(name.removeprefix("-").isdigit() for name in own):
        raise ModelError(
            f"classes are {', '.join(given[:10])}, and the model's own are {', '.join(own[:10])}: give each name with "
            f"the model's spelling of it, such as classes: {{{given[0]}: {own[0]}, …}}"
        )
    return given


def _meaning(model: ModelProto, score: Tensor, has_label: bool) -> Meaning:
    """The meaning of the scores, by the file's metadata or the last operator."""
    stated = metadata_of(model, "scores")
    for meaning in _STATED:
        if meaning == stated:
            return meaning
    node = last_operator(model, score.name)
    kind = node.op_type if node is not None else None
    if kind == "LogSoftmax":
        return "log_probabilities"
    if kind == "Sigmoid" and len(score.shape) == 2 and score.shape[1] != 1:
        if has_label:
            return "independent"
        raise ModelError(
            f"output {score} gives each class a probability of its own (Sigmoid). If exactly one class is right, set "
            f"scores: independent. If several may be right (multi-label), set problem: multilabel."
        )
    if kind in _LOGIT_NODES or (node is not None and kind == "Add" and _adds_bias(model, node)) or _gives_margins(node):
        return "logits"
    if kind in _PROBABILITY_NODES or has_label:
        return "probabilities"
    raise ModelError(
        f"it cannot be told from the model's last operator ({kind}) whether {score.name!r} gives probabilities or "
        f"logits; set scores: probabilities or scores: logits"
    )


def _gives_margins(node: NodeProto | None) -> bool:
    """Whether it is a linear or support vector classifier whose scores are distances to its boundaries."""
    if node is None or node.op_type not in ("LinearClassifier", "SVMClassifier"):
        return False
    made = any(item.name == "post_transform" and item.s in _MADE_PROBABILITIES for item in node.attribute)
    return not made and not _is_calibrated(node)


def _is_calibrated(node: NodeProto) -> bool:
    """Whether a support vector machine makes probabilities of its distances."""
    return any(item.name == "prob_a" and item.floats for item in node.attribute)


def _is_reversed(node: NodeProto | None) -> bool:
    """Whether it gives the score of the second of two classes first.

    A support vector machine without probabilities does: it answers the first class where its one number is above zero,
    and gives (−number, number). One that is only weights gives each class its own.
    """
    if node is None or node.op_type != "SVMClassifier" or len(classifier_labels(node)) != 2:
        return False
    has_vectors = any(item.name == "vectors_per_class" and any(item.ints) for item in node.attribute)
    return has_vectors and not _is_calibrated(node)


def _adds_bias(model: ModelProto, node: NodeProto) -> bool:
    """Whether one of the summands is a weight: else it may be an average of probabilities."""
    weights = {tensor.name for tensor in model.graph.initializer}
    weights |= {name for other in model.graph.node if other.op_type == "Constant" for name in other.output}
    return any(name in weights for name in node.input)


def _listed(outputs: Sequence[Tensor]) -> str:
    return "; ".join(map(str, outputs))
