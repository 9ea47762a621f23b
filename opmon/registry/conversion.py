"""A scikit-learn model as ONNX. Loading one runs code that is in the model: only when the user says so."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

from opmon.errors import ModelError
from opmon.registry.signature import Signature
from opmon.values import canonical_class

OPSET = {"": 18, "ai.onnx.ml": 3}


def write_onnx(folder: Path, signature: Signature | None, target: Path) -> None:
    """Convert the model in ``folder`` and write it to ``target``, in one step."""
    import mlflow.sklearn

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = mlflow.sklearn.load_model(str(folder))
    except Exception as exc:  # unpickling runs the model's own code, which may fail in any way
        raise ModelError(
            f"the scikit-learn model cannot be loaded: {type(exc).__name__}: {exc}. Install the versions in its "
            f"requirements.txt, or register an ONNX flavour of it."
        ) from exc
    data = convert(model, signature)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    partial.write_bytes(data)
    partial.replace(target)


def convert(model: Any, signature: Signature | None) -> bytes:
    """The model as ONNX; a classifier has ``label`` and a matrix ``probabilities``, and its classes as metadata."""
    from skl2onnx import to_onnx
    from sklearn.base import is_classifier

    options = {"zipmap": False} if is_classifier(model) else None
    try:
        converted = to_onnx(model, initial_types=_inputs(model, signature), options=options, target_opset=OPSET)
    except Exception as exc:  # skl2onnx raises whatever its converters raise
        raise ModelError(
            f"{type(model).__name__} cannot be converted to ONNX: {type(exc).__name__}: {exc}. Register an ONNX "
            f"flavour of it (mlflow.onnx.log_model)."
        ) from exc
    classes = getattr(model, "classes_", None)
    if is_classifier(model) and classes is not None:
        entry = converted.metadata_props.add()
        entry.key, entry.value = "classes", json.dumps([canonical_class(name) for name in classes.tolist()])
    data: bytes = converted.SerializeToString()
    return data


def _inputs(model: Any, signature: Signature | None) -> list[tuple[str, Any]]:
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

    columns = signature.columns if signature else None
    if columns and not all(kind in _NUMBERS for _, kind in columns):
        kinds = {"string": StringTensorType, "boolean": Int64TensorType}
        return [(name, kinds.get(kind, FloatTensorType)([None, 1])) for name, kind in columns]
    width = getattr(model, "n_features_in_", None)
    if width is None and columns:
        width = len(columns)
    if width is None and signature and signature.tensors:
        width = signature.tensors[0][2][-1]
    if width is None:
        raise ModelError(
            f"{type(model).__name__} does not say how many inputs it takes: log it with a signature "
            f"(mlflow.models.infer_signature), or register an ONNX flavour of it"
        )
    return [("X", FloatTensorType([None, int(width)]))]


_NUMBERS = frozenset({"double", "float", "long", "integer"})
