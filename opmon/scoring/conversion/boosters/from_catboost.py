"""CatBoost's own file as ONNX, which CatBoost itself writes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.errors import ModelError
from opmon.scoring._failures import first_line

if TYPE_CHECKING:
    from catboost import CatBoost
_POWERS = ("Poisson", "Tweedie")
"""Losses of which CatBoost's graph gives the logarithm of the answer."""


def from_file(path: Path, single: bool) -> bytes:
    """The graph, for inputs in float32 or float64; CatBoost compares them in float32."""
    model = loaded(path)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "model.onnx"
        try:
            model.save_model(str(written), format="onnx")
        except Exception as exc:  # CatBoost raises one error for all, and some that are of no kind
            raise ModelError(f"CatBoost does not write it as ONNX: {first_line(exc)}") from exc
        data = written.read_bytes()
    return finished(data, str(model.get_all_params().get("loss_function", "")), single)


def loaded(path: Path, kind: str = "CatBoost") -> CatBoost:
    """The model in a file, as CatBoost reads it."""
    import catboost

    classes = {"CatBoostClassifier": catboost.CatBoostClassifier, "CatBoostRegressor": catboost.CatBoostRegressor}
    model = classes.get(kind, catboost.CatBoost)()
    try:
        model.load_model(str(path), format="json" if path.suffix == ".json" else "cbm")
    except Exception as exc:
        raise ModelError(f"CatBoost does not read its file {path.name}: {first_line(exc)}") from exc
    return model


def finished(data: bytes, loss: str, single: bool) -> bytes:
    """CatBoost's graph with inputs in float64 unless ``single``, and answers in place of their logarithms."""
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load_from_string(data)
    graph = model.graph
    if not any(opset.domain == "" for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("", 13))
    model.ir_version = max(model.ir_version, 8)
    if not single:
        (taken,) = graph.input
        for node in graph.node:
            node.input[:] = ["single" if name == taken.name else name for name in node.input]
        taken.type.tensor_type.elem_type = TensorProto.DOUBLE
        graph.node.insert(0, helper.make_node("Cast", [taken.name], ["single"], to=TensorProto.FLOAT))
    if loss.partition(":")[0] in _POWERS:
        (given,) = graph.output
        for node in graph.node:
            node.output[:] = ["logarithm" if name == given.name else name for name in node.output]
        graph.node.append(helper.make_node("Exp", ["logarithm"], [given.name]))
    return bytes(model.SerializeToString())
