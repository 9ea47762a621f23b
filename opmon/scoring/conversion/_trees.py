"""Converters of trees that compute as scikit-learn does: inputs in float32, whole votes, and gaps to their own side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from opmon.errors import ModelError
from opmon.scoring.conversion._writing import Converter, written_by

if TYPE_CHECKING:
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope
    from sklearn.base import BaseEstimator
    from sklearn.tree import BaseDecisionTree
Options = Mapping[int, Mapping[str, object]]
"""Options of skl2onnx for parts of a model, by their id."""

_ENSEMBLES = ("RandomForest", "ExtraTrees", "GradientBoosting", "HistGradientBoosting")
_WITH_TENSORS = 3
"""The version of ONNX's trees from which their numbers may be in float64."""
_LISTS = ("nodeids", "treeids", "ids")


def tree_converters() -> dict[type, Converter]:
    """The converters of models of trees that take the place of skl2onnx's own."""
    from sklearn import ensemble, tree

    kinds = [getattr(ensemble, f"{name}{task}") for name in _ENSEMBLES for task in ("Classifier", "Regressor")]
    kinds += [
        getattr(tree, f"{name}Tree{task}") for name in ("Decision", "Extra") for task in ("Classifier", "Regressor")
    ]
    return {**dict.fromkeys(kinds, _convert), ensemble.IsolationForest: _convert_isolating}


def _convert_isolating(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    from skl2onnx.common._registration import get_converter

    with _rewritten(scope, operator, container):
        get_converter(operator.type)(scope, operator, container)


def _convert(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    from skl2onnx.common._registration import get_converter

    write, categories = get_converter(operator.type), getattr(operator.raw_operator, "is_categorical_", None)
    if categories is not None and categories.any():
        raise ModelError("its trees split by categories, and skl2onnx takes these for numbers")
    with (
        _in_single(scope, operator, container),
        _raised(scope, operator, container),
        _rewritten(scope, operator, container),
    ):
        if _compares_doubles(operator):
            kind = "TreeEnsembleClassifier" if operator.type.endswith("Classifier") else "TreeEnsembleRegressor"
            write(scope, operator, container, kind, "ai.onnx.ml", _WITH_TENSORS)
        else:
            write(scope, operator, container)


@contextmanager
def _in_single(scope: Scope, operator: Operator, container: ModelComponentContainer) -> Iterator[None]:
    """Cast numbers in float64 to float32 and back: ONNX Runtime has no trees that give float64."""
    from onnx import TensorProto
    from skl2onnx.common._apply_operation import apply_cast
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    given, wanted = operator.inputs[0], list(operator.outputs)
    if not isinstance(given.type, DoubleTensorType):
        yield
        return
    if not _compares_doubles(operator):
        single = scope.declare_local_variable("single", FloatTensorType(given.type.shape))
        apply_cast(scope, given.full_name, single.full_name, container, to=TensorProto.FLOAT)
        operator.inputs.set_element(0, single)
    for place, output in enumerate(wanted):
        if isinstance(output.type, DoubleTensorType):
            operator.outputs.set_element(place, scope.declare_local_variable("scores", FloatTensorType()))
    made = list(operator.outputs)
    try:
        yield
    finally:
        operator.inputs.set_element(0, given)
        for place, output in enumerate(wanted):
            operator.outputs.set_element(place, output)
    for own, output in zip(made, wanted, strict=True):
        if own is not output:
            apply_cast(scope, own.full_name, output.full_name, container, to=TensorProto.DOUBLE)


@contextmanager
def _raised(scope: Scope, operator: Operator, container: ModelComponentContainer) -> Iterator[None]:
    """Let a regression of counts or sizes answer e to the sum of its trees; skl2onnx gives the sum."""
    from skl2onnx.common.data_types import FloatTensorType

    link = type(getattr(getattr(operator.raw_operator, "_loss", None), "link", None)).__name__
    if operator.type != "SklearnHistGradientBoostingRegressor" or link == "IdentityLink":
        yield
        return
    if link != "LogLink":
        raise ModelError(f"its answers are not the sums of its trees ({link}), and opmon does not know what they are")
    (answer,) = operator.outputs
    summed = scope.declare_local_variable("summed", FloatTensorType())
    operator.outputs.set_element(0, summed)
    try:
        yield
    finally:
        operator.outputs.set_element(0, answer)
    container.add_node("Exp", [summed.full_name], [answer.full_name], name=scope.get_unique_operator_name("Exp"))


@contextmanager
def _rewritten(scope: Scope, operator: Operator, container: ModelComponentContainer) -> Iterator[None]:
    """Write whole numbers where skl2onnx has truth values, send gaps to their side, and let forests count votes."""
    write, trees = container.add_node, _trees_of_forest(operator.raw_operator)
    written = _written_trees(operator.raw_operator)

    def rewrite(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        attributes = dict(_attribute(name, value) for name, value in attributes.items())
        if written is not None and kind.startswith("TreeEnsemble"):
            attributes["nodes_missing_value_tracks_true"] = _gaps_to_the_left(next(written, ()), attributes)
        if kind == "TreeEnsembleClassifier" and trees:
            _count(scope, container, write, inputs, outputs, attributes, trees)
        else:
            write(kind, inputs, outputs, **attributes)

    with written_by(container, rewrite):
        yield


def _count(
    scope: Scope,
    container: ModelComponentContainer,
    write: Callable[..., None],
    inputs: Sequence[str],
    outputs: Sequence[str],
    attributes: dict[str, Any],
    trees: int,
) -> None:
    """The sum of the trees' votes, and the first class with the most.

    skl2onnx sums shares of votes in float32: where two classes have as many votes, the order of the sum decides, which
    changes with the size of the batch.
    """
    from onnx import TensorProto

    label, scores = outputs
    names = {name: scope.get_unique_variable_name(name) for name in ("votes", "own", "rest", "trees", "at", "names")}
    strings = attributes.get("classlabels_strings")
    classes = strings or attributes["classlabels_int64s"]
    kept = {name: value for name, value in attributes.items() if name.startswith("nodes_")}
    kept |= {f"target_{name}": attributes[f"class_{name}"] for name in _LISTS}
    weights = np.asarray(attributes["class_weights"], np.float64) * trees
    single = len(set(kept["target_ids"])) == 1  # of two classes the votes for the second alone are written
    if single:
        kept["target_ids"] = [0] * len(kept["target_ids"])
    write(
        "TreeEnsembleRegressor",
        inputs,
        [names["own" if single else "votes"]],
        name=scope.get_unique_operator_name("TreeEnsembleRegressor"),
        op_domain="ai.onnx.ml",
        op_version=1,
        n_targets=1 if single else len(classes),
        target_weights=weights.astype(np.float32),
        **kept,
    )
    container.add_initializer(names["trees"], TensorProto.FLOAT, [1], [float(trees)])
    if single:
        write("Sub", [names["trees"], names["own"]], [names["rest"]], name=scope.get_unique_operator_name("Sub"))
        both = scope.get_unique_operator_name("Concat")
        write("Concat", [names["rest"], names["own"]], [names["votes"]], name=both, axis=1)
    write("Div", [names["votes"], names["trees"]], [scores], name=scope.get_unique_operator_name("Div"))
    kind = TensorProto.STRING if strings else TensorProto.INT64
    container.add_initializer(names["names"], kind, [len(classes)], [s.encode() for s in strings or ()] or classes)
    operator = scope.get_unique_operator_name("ArgMax")
    write("ArgMax", [names["votes"]], [names["at"]], name=operator, axis=1, keepdims=0)
    write("Gather", [names["names"], names["at"]], [label], name=scope.get_unique_operator_name("Gather"))


def _written_trees(model: BaseEstimator) -> Iterator[Sequence[BaseDecisionTree]] | None:
    """The trees in each node that skl2onnx writes of a model, node by node.

    None of a model whose gaps skl2onnx sends where they belong, or that takes none.
    """
    from sklearn.ensemble import IsolationForest
    from sklearn.ensemble._forest import BaseForest, ForestClassifier
    from sklearn.tree import BaseDecisionTree

    if isinstance(model, BaseDecisionTree):
        return repeat([model])
    if isinstance(model, IsolationForest):
        return iter([[tree] for tree in model.estimators_])
    if isinstance(model, ForestClassifier) and model.n_outputs_ > 1:  # a tree that is a leaf is written as a number
        return iter([[tree] for tree in model.estimators_ if tree.tree_.node_count > 1])
    return repeat(model.estimators_) if isinstance(model, BaseForest) else None


def _gaps_to_the_left(trees: Sequence[BaseDecisionTree], attributes: Mapping[str, Any]) -> list[int]:
    """For each node that is written of some trees whether NaN goes left there, which skl2onnx says of none."""
    left = [tree.tree_.children_left for tree in trees]
    if np.concatenate([*left, []]).clip(0).tolist() != list(attributes["nodes_truenodeids"]):
        raise ModelError("its trees are written in another order: where they send missing values is not known")
    return [int(way) for tree in trees for way in tree.tree_.missing_go_to_left]


def _trees_of_forest(model: BaseEstimator) -> int:
    """The number of trees that vote; 0 where they do not, or on several questions."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    forest = isinstance(model, RandomForestClassifier | ExtraTreesClassifier) and model.n_outputs_ == 1
    return len(model.estimators_) if forest else 0


def _compares_doubles(operator: Operator) -> bool:
    """Whether these are trees to which scikit-learn gives their inputs in float64."""
    from skl2onnx.common.data_types import DoubleTensorType

    return "HistGradientBoosting" in operator.type and isinstance(operator.inputs[0].type, DoubleTensorType)


def _attribute(name: str, value: object) -> tuple[str, object]:
    """An attribute as ONNX takes it: truth values are whole numbers, and a list in float64 is a tensor."""
    from onnx import numpy_helper

    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return f"{name}_as_tensor", numpy_helper.from_array(value, name)
    if isinstance(value, list) and any(isinstance(item, bool | np.bool_) for item in value):
        return name, [int(item) for item in value]
    return name, value
