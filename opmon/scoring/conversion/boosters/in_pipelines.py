"""XGBoost's and LightGBM's models as steps of a scikit-learn pipeline, which skl2onnx does not know."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opmon.errors import ModelError
from opmon.scoring.conversion._parts import parts_of
from opmon.scoring.conversion._writing import Converter
from opmon.scoring.conversion.boosters._sparse import takes_sparse
from opmon.scoring.conversion.boosters.ensemble import Ensemble
from opmon.scoring.conversion.boosters.from_lightgbm import from_text
from opmon.scoring.conversion.boosters.from_xgboost import from_document
from opmon.scoring.conversion.boosters.writing import TREES_FROM, write
from opmon.types import Array

if TYPE_CHECKING:
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope, Variable
    from sklearn.base import BaseEstimator
_FROM = ("xgboost", "lightgbm")
_OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False], "raw_scores": [True, False]}


def is_boosted(model: object) -> bool:
    """Whether it is a model of XGBoost's or LightGBM's scikit-learn interface."""
    return type(model).__module__.split(".")[0] in _FROM and hasattr(model, "predict")


def teach(model: BaseEstimator) -> None:
    """Register converters in skl2onnx for the kinds of boosted models in ``model``."""
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes,
        calculate_linear_regressor_output_shapes,
    )
    from sklearn.base import is_classifier

    for part in parts_of(model):
        kind = type(part)
        if not is_boosted(part):
            continue
        shapes = calculate_linear_classifier_output_shapes
        if not is_classifier(part):
            shapes = calculate_linear_regressor_output_shapes
        options = _OPTIONS if is_classifier(part) else None
        update_registered_converter(kind, f"Opmon{kind.__name__}", shapes, _convert, options=options)


def boosted_converters(model: BaseEstimator) -> dict[type, Converter]:
    """The converters of the boosted models in ``model``, which know what their inputs are there."""

    def convert(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
        part = operator.raw_operator
        sparse = takes_sparse(model, part) if type(part).__module__.startswith("xgboost") else False
        if sparse is None:
            raise ModelError("its input may be sparse, and of a sparse one XGBoost takes zeros for missing values")
        _add(scope, operator, container, sparse)

    return {type(part): convert for part in parts_of(model) if is_boosted(part)}


def ensemble_of(model: BaseEstimator) -> Ensemble:
    """The trees of a model of XGBoost's or LightGBM's scikit-learn interface."""
    from sklearn.base import is_classifier

    classes = model.classes_.tolist() if is_classifier(model) else None
    if type(model).__module__.startswith("lightgbm"):
        return from_text(model.booster_.model_to_string(), classes)
    if model.missing is not None and not math.isnan(model.missing):
        raise ModelError(f"it takes {model.missing} for missing, which opmon does not convert")
    ensemble = from_document(json.loads(bytes(model.get_booster().save_raw("json"))), best=True)
    if classes is not None and ensemble.classes is None:
        raise ModelError("its objective gives no classes")
    return ensemble


def _convert(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    _add(scope, operator, container, zeros_are_missing=False)


def _add(scope: Scope, operator: Operator, container: ModelComponentContainer, zeros_are_missing: bool) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    given: Sequence[Variable] = operator.outputs
    ensemble, writer = ensemble_of(operator.raw_operator), _Inside(scope, container)
    made = [writer.name(word) for word in ("answer", "scores")][: len(given)]
    taken, single = operator.inputs[0].full_name, not isinstance(operator.inputs[0].type, DoubleTensorType)
    if zeros_are_missing:
        taken = _without_zeros(writer, taken, np.float32 if single else np.float64)
    write(ensemble, writer, taken, made, single)
    for name, output in zip(made, given, strict=True):
        if isinstance(output.type, DoubleTensorType):
            writer.node("Cast", [name], [output.full_name], to=11)
        else:
            writer.node("Identity", [name], [output.full_name])


def _without_zeros(writer: _Inside, taken: str, kind: type[np.floating]) -> str:
    """Numbers with NaN for zero."""
    from onnx import helper

    numbers, zeros, kept = (writer.name(word) for word in ("numbers", "zeros", "kept"))
    writer.node("Cast", [taken], [numbers], to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
    writer.node("Equal", [numbers, writer.constant(np.zeros(1, kind))], [zeros])
    writer.node("Where", [zeros, writer.constant(np.full(1, np.nan, kind)), numbers], [kept])
    return kept


class _Inside:
    """Nodes and constants of a graph that skl2onnx makes."""

    def __init__(self, scope: Scope, container: ModelComponentContainer) -> None:
        self._scope, self._container = scope, container

    def name(self, word: str) -> str:
        return str(self._scope.get_unique_variable_name(word))

    def constant(self, values: Array | list[str]) -> str:
        from onnx import TensorProto, helper

        name = self.name("constant")
        if isinstance(values, list):
            self._container.add_initializer(name, TensorProto.STRING, [len(values)], [text.encode() for text in values])
        else:
            kind = helper.np_dtype_to_tensor_dtype(values.dtype)
            self._container.add_initializer(name, kind, list(values.shape), values.reshape(-1).tolist())
        return name

    def node(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **more: Any) -> None:
        name = self._scope.get_unique_operator_name(kind)
        version = {"op_version": TREES_FROM} if domain else {}
        self._container.add_node(kind, list(inputs), list(outputs), name=name, op_domain=domain, **version, **more)
