"""The suite that every auxiliary variable passes: one finite number per input, whatever the batches."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Head
from opmon.types import Batch

if TYPE_CHECKING:
    from opmon.scoring.reference.fitted import Reference
    from opmon.scoring.scorer import Scorer

WIDTH, CLASSES = 6, 4


def check_head(head: Head, folder: Path, reference: Reference | None = None, model: Path | None = None) -> None:
    """Check a variable of a small network: finite, float32, the same in batches of any size, and not one for all.

    ``reference`` is what was fitted for ``model``, where the variable needs one; without a model of one's own the suite
    writes a network of one hidden layer to ``folder``, which takes rows of 6 numbers, and lets a variable that learns
    learn from such rows.
    """
    from opmon.scoring.reference.fitted import Reference
    from opmon.scoring.reference.fitting import open_fit
    from opmon.scoring.scorer import Scorer

    assert isinstance(head, Head), f"{type(head).__name__} does not subclass opmon.abc.Head"
    pickle.dumps(head)  # jobs carry it
    if head.columns:
        _of_the_log(head)
        return
    path = network(folder / "network.onnx") if model is None else model
    if reference is None and head.fitted_as is not None:
        usual = np.random.default_rng(3).normal(size=(400, WIDTH)).astype(np.float32)
        fitted = open_fit(path, "classification", device="cpu", heads=[head]).run(_batches(usual, 100))
        assert fitted.weights[head.fitted_as], "fit() gives no arrays, though fitted_as says that it learns"
        fitted.save(folder / "reference.npz")
        reference = Reference.load(folder / "reference.npz")
    scorer = Scorer.open(path, "classification", device="cpu", heads={"mine": head}, reference=reference)
    rows = np.random.default_rng(4).normal(size=(300, WIDTH)).astype(np.float32)
    whole, pieces = (_values(scorer, rows, size) for size in (300, 37))
    assert len(whole) == len(rows), f"{len(whole)} values for {len(rows)} inputs"
    assert np.isfinite(whole).all(), "a value is not finite"
    assert np.allclose(whole, pieces, rtol=1e-4, atol=1e-6), "the values depend on what else is in the batch"
    assert whole.min() < whole.max(), "all inputs have the same value"


def network(path: Path) -> Path:
    """A network of one hidden layer that tells 4 classes apart, as an ONNX file."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    hidden, out = rng.normal(size=(WIDTH, 8)).astype(np.float32), rng.normal(size=(8, CLASSES)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "hidden"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "out"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["inputs", WIDTH])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["inputs", CLASSES])],
        [numpy_helper.from_array(hidden, "hidden"), numpy_helper.from_array(out, "out")],
    )
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), str(path))
    return path


def _values(scorer: Scorer, rows: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    return np.concatenate([part.variables["mine"] for part in scorer.score(_batches(rows, size))])


def _of_the_log(head: Head) -> None:
    """Check a variable of columns of the log: finite and float32 also where values are missing."""
    numbers = np.random.default_rng(4).uniform(size=300)
    given = {name: numbers.copy() for name in head.columns}
    whole = np.asarray(head.of_columns(given), np.float32)
    assert whole.shape == (300,), f"{whole.shape} is not one value for each of 300 inputs"
    assert whole.min() < whole.max(), "all inputs have the same value"
    gaps = {name: np.where(np.arange(300) % 7 == 0, np.nan, values) for name, values in given.items()}
    assert np.isfinite(np.asarray(head.of_columns(gaps))).all(), "a value is not finite where one is missing"
    assert all((given[name] == numbers).all() for name in given), "the columns that it is given are changed"


def _batches(rows: NDArray[np.float32], size: int) -> Iterator[Batch]:
    import pyarrow as pa

    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(some.ravel()), WIDTH)
        yield Batch(0, start, pa.record_batch({"x": lists}))
