"""A registered model as a tomography asks it: what perturbations make of inputs reaches it as it is, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opmon.config.robustness import RobustnessSettings
from opmon.errors import InputError
from opmon.robustness.result import Tomography
from opmon.scoring.scorer import Scorer
from opmon.stages.tomography import mapped
from opmon.stages.tomography_model import prepared


@pytest.fixture
def scorer(tmp_path: Path) -> Scorer:
    """A model of an income and of an age in whole years."""
    nodes = [
        helper.make_node("Cast", ["age"], ["years"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["income", "years"], ["x"], axis=1),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    given = [
        helper.make_tensor_value_info("income", TensorProto.FLOAT, ["n", 1]),
        helper.make_tensor_value_info("age", TensorProto.INT64, ["n", 1]),
    ]
    gives = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    weights = numpy_helper.from_array(np.array([[-1, 1], [0.02, -0.02]], np.float32), "w")
    graph = helper.make_graph(nodes, "g", given, [gives], [weights])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "model.onnx")
    return Scorer.open(tmp_path / "model.onnx", "classification", device="cpu", threads=1)


def run(scorer: Scorer, missing: dict[str, Any]) -> Tomography:
    rng = np.random.default_rng(0)
    rows = [{"income": float(rng.normal(1)), "age": int(rng.integers(18, 80))} for _ in range(60)]
    truth = [str(int(row["income"] > 0.02 * row["age"])) for row in rows]
    settings = RobustnessSettings(
        kind="table", perturbations=[{"type": "missing", **missing}], quality=False, min_inputs=2
    )
    return mapped(prepared(scorer, settings, rows, truth, None), settings, 0)


def test_a_value_that_is_missing_is_no_whole_number(scorer: Scorer) -> None:
    with pytest.raises(InputError, match=r"input age missing or infinite, which int64 cannot hold.*fill: median"):
        run(scorer, {"fill": "nan"})


@pytest.mark.parametrize("missing", [{}, {"fill": "nan", "columns": [0]}], ids=["median", "of the other column"])
def test_what_a_model_takes_may_be_missing(scorer: Scorer, missing: dict[str, Any]) -> None:
    share = run(scorer, missing).share
    assert share[0] == 1
    assert 0.4 < share[-1] < 1


def test_what_a_log_holds_beside_may_be_of_several_kinds(scorer: Scorer) -> None:
    """The rows are of several rounds: a column may have held numbers in one, and words in another."""
    same = {"income": 1.0, "zip": 2139}
    rows: list[dict[str, Any]] = [{**same, "age": 30 + row, "hash": 2**63 + row} for row in range(6)]
    rows[3] |= {"income": "2.5", "zip": "SW1A", "note": [1]}
    settings = RobustnessSettings(kind="table", perturbations=["noise"], quality=False, relation="own")
    ready = prepared(scorer, settings, rows, [None] * 6, None)
    assert ready.left_out == 0
    assert ready.evaluation.inputs.tolist() == [[2.5 if row == 3 else 1.0, 30 + row] for row in range(6)]
