from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from opmon.scoring.graph.export import write_monitor_graph
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.reference.fitting import open_fit
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import Session, open_session
from opmon.types import Batch


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


@pytest.fixture
def mlp(tmp_path: Path) -> Callable[..., Path]:
    """Writes x [n, 6] -> tanh(x W + b) + offset = ``hidden`` [n, 5] -> scores [n, classes]."""

    def written(
        classes: int = 4,
        offset: float = 0.0,
        kind: int = TensorProto.FLOAT,
        batch: Any = "n",
        then: str | None = None,
        opset: int = 17,
        name: str = "mlp",
        seed: int = 0,
        hidden: int = 5,
    ) -> Path:
        rng = np.random.default_rng(seed)
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        second = rng.normal(size=(hidden, classes))
        weights = {"w1": rng.normal(size=(6, hidden)), "b1": rng.normal(size=hidden) / 9, "w2": second}
        weights |= {"b2": -offset * second.sum(0), "offset": np.array(offset)}
        nodes = [
            helper.make_node("Gemm", ["x", "w1", "b1"], ["g1"]),
            helper.make_node("Tanh", ["g1"], ["t1"]),
            helper.make_node("Add", ["t1", "offset"], ["hidden"]),
            helper.make_node("Gemm", ["hidden", "w2", "b2"], ["scores"]),
        ]
        if then is not None:
            nodes.append(helper.make_node(then, ["scores"], ["answers"]))
        made = helper.make_graph(
            nodes,
            "mlp",
            [helper.make_tensor_value_info("x", kind, [batch, 6])],
            [helper.make_tensor_value_info("scores" if then is None else "answers", kind, [batch, classes])],
            [numpy_helper.from_array(np.asarray(value, dtype), key) for key, value in weights.items()],
        )
        path = tmp_path / f"{name}.onnx"
        onnx.save(helper.make_model(made, ir_version=10, opset_imports=[helper.make_opsetid("", opset)]), str(path))
        return path

    return written


@pytest.fixture
def fed() -> Callable[..., Iterator[Batch]]:
    """Rows as batches with one column ``x`` of lists."""

    def made(rows: NDArray[Any], step: int = 500, **columns: Any) -> Iterator[Batch]:
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            lists = pa.FixedSizeListArray.from_arrays(pa.array(part.astype(np.float32).ravel()), rows.shape[1])
            more = {key: pa.array(values[start : start + step]) for key, values in columns.items()}
            yield Batch(0, start, pa.RecordBatch.from_pydict({"x": lists, **more}))

    return made


@pytest.fixture
def fitted(fed) -> Callable[..., Reference]:
    """A reference of a model in a file, fitted on rows."""

    def made(path: Path, rows: NDArray[Any], problem: Any = "classification", **options: Any) -> Reference:
        return open_fit(path, problem, device="cpu", scores=options.pop("scores", "auto"), **options).run(fed(rows))

    return made


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., Session]:
    """The monitor graph of a model in a file, written, checked and loaded."""

    def made(path: Path, heads: dict[str, Any], reference: Any = None, problem: Any = "classification") -> Session:
        target = tmp_path / f"{path.stem}-monitor.onnx"
        write_monitor_graph(path, target, problem, heads, reference, raw=True)
        return open_session(target, "cpu", threads=1)

    return made


def run(session: Session, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """All outputs by name."""
    names = [item.name for item in session.outputs]
    return dict(zip(names, session.run(names, {"x": x}), strict=True))


@pytest.fixture
def outputs() -> Callable[[Session, NDArray[Any]], dict[str, NDArray[Any]]]:
    return run
