from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from opmon.scoring.scorer import Scorer


@pytest.fixture(scope="session")
def digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    images, targets = load_digits(return_X_y=True)
    return images.astype(np.float32), targets


@pytest.fixture(scope="session")
def linear(digits) -> LogisticRegression:
    return LogisticRegression(max_iter=50).fit(digits[0][:900], digits[1][:900])


@pytest.fixture
def graph(tmp_path: Path) -> Callable[..., Path]:
    """Writes an ONNX file of nodes, inputs, outputs and weights."""

    def written(
        nodes: Sequence[Any],
        inputs: Sequence[tuple[str, int, Sequence[Any]]],
        outputs: Sequence[tuple[str, int, Sequence[Any]]],
        weights: dict[str, NDArray[Any]] | None = None,
        **changes: Any,
    ) -> Path:
        made = helper.make_graph(
            list(nodes),
            "model",
            [helper.make_tensor_value_info(*item) for item in inputs],
            [helper.make_tensor_value_info(*item) for item in outputs],
            [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
        )
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", changes.pop("opset", 17))])
        model.ir_version = changes.pop("ir_version", 10)
        for key, value in changes.pop("metadata", {}).items():
            entry = model.metadata_props.add()
            entry.key, entry.value = key, value
        path = tmp_path / "model.onnx"
        onnx.save(model, str(path))
        return path

    return written


@pytest.fixture
def dense(graph) -> Callable[..., Path]:
    """A linear layer 4 -> ``width`` that passes its inputs on, and then the operators named."""

    def written(*then: str, width: int = 3, batch: Any = "n", kind: int = TensorProto.FLOAT, **changes: Any) -> Path:
        weights = np.eye(4, width, dtype=helper.tensor_dtype_to_np_dtype(kind))
        nodes = [helper.make_node("MatMul", ["x", "w"], ["t0"])]
        for i, name in enumerate(then):
            nodes.append(helper.make_node(name, [f"t{i}"], [f"t{i + 1}"]))
        nodes[-1].output[0] = "y"
        return graph(nodes, [("x", kind, [batch, 4])], [("y", kind, [batch, width])], {"w": weights}, **changes)

    return written


@pytest.fixture
def opened(dense) -> Callable[..., Scorer]:
    def made(*then: str, problem: Any = "classification", width: int = 3, **options: Any) -> Scorer:
        return Scorer.open(dense(*then, width=width), problem, device="cpu", **options)

    return made
