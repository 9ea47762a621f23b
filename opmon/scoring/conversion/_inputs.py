"""The inputs of a converted model: by its signature, or else by the model, and as exact as it computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from opmon.errors import ModelError
from opmon.scoring.conversion._parts import takes_text
from opmon.types import Signature

if TYPE_CHECKING:
    from skl2onnx.common.data_types import TensorType
    from sklearn.base import BaseEstimator
Inputs: TypeAlias = "list[tuple[str, TensorType]]"
NAME = "X"
"""The input that takes all numbers, or the text, where the signature has no name for it."""
_NUMBERS = frozenset({"double", "float", "long", "integer"})
_SINGLE = frozenset({"float", "float32", "float16"})
_TEXTS = frozenset({"string", "str", "object", "<U0"})


def possible_inputs(model: BaseEstimator, signature: Signature | None) -> Iterator[Inputs]:
    """The ways to give the model its inputs, best first: numbers in float64 as scikit-learn takes them, or float32."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    columns = signature.columns if signature else ()
    tensors = signature.tensors if signature else ()
    if takes_text(model):
        yield [(_name_of_text(signature), StringTensorType([None, 1]))]
        return
    kinds = [kind for _, kind in columns] or [kind for _, kind, _ in tensors]
    single = bool(kinds) and all(kind in _SINGLE for kind in kinds)
    for numbers in (FloatTensorType,) if single else (DoubleTensorType, FloatTensorType):
        if len(tensors) > 1 or any(kind in _TEXTS for _, kind, _ in tensors):
            yield [(name or NAME, _tensor(kind, shape, numbers)) for name, kind, shape in tensors]
            continue
        if all(kind in _NUMBERS for _, kind in columns):
            yield [(NAME, numbers([None, _width(model, signature)]))]
        if columns:  # a model that chooses its columns by name needs each of them
            yield [(name, _column(kind, numbers)) for name, kind in columns]


def _column(kind: str, numbers: type[TensorType]) -> TensorType:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    return {"string": StringTensorType, "boolean": Int64TensorType}.get(kind, numbers)([None, 1])


def _tensor(kind: str, shape: tuple[int, ...], numbers: type[TensorType]) -> TensorType:
    from skl2onnx.common.data_types import StringTensorType

    sizes = [None, *(shape[1:] or (1,))]
    return (StringTensorType if kind in _TEXTS else numbers)(sizes)


def _name_of_text(signature: Signature | None) -> str:
    names = [*signature.names, *(name for name, _, _ in signature.tensors)] if signature else []
    return (names[0] if len(names) == 1 else None) or NAME


def _width(model: BaseEstimator, signature: Signature | None) -> int:
    """The number of columns that the model takes."""
    width = getattr(model, "n_features_in_", None)
    if width is None and signature and signature.columns:
        width = len(signature.columns)
    if width is None and signature and signature.tensors:
        width = signature.tensors[0][2][-1]
    if width is None:
        raise ModelError(
            f"{type(model).__name__} does not say how many inputs it takes: log it with a signature "
            f"(mlflow.models.infer_signature), or register an ONNX flavour of it"
        )
    return int(width)
