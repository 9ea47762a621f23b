"""What the labels of inputs mean to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opmon.errors import InputError
from opmon.scoring.scorer import Scorer
from opmon.stages.tomography_truth import labelled, names_of

ALL = np.arange(3)


@pytest.fixture
def scorer(tmp_path: Path) -> Any:
    """A linear model of two numbers with ``width`` outputs."""

    def made(width: int, problem: Any = "classification", **options: Any) -> Scorer:
        weights = numpy_helper.from_array(np.eye(2, width, dtype=np.float32), "w")
        given, gives = (
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
            for name, size in (("x", 2), ("y", width))
        )
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [given], [gives], [weights])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
        onnx.save(model, str(tmp_path / "model.onnx"))
        return Scorer.open(tmp_path / "model.onnx", problem, device="cpu", **options)

    return made


def test_labels_are_columns_of_the_scores(scorer: Any) -> None:
    kept, columns = labelled(scorer(3, classes=["cat", "dog", "2"]), ALL, ["dog", None, " 2.0 "])
    assert (kept.tolist(), columns.tolist()) == ([0, 2], [1, 2])
    assert labelled(scorer(3), np.array([2, 0]), ["2", None, "1"])[1].tolist() == [1, 2]
    assert labelled(scorer(1), ALL, ["0", "1.0", ""])[1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["0", "11", "11"], r"2 of 3 labels are none of the model's classes: '11' \(2\); .* are 0, 1, 2\."),
        (["²", "1", None], r"1 of 2 labels .*'²' \(1\)"),
        (["cat", "dog", "1.5"], r"3 of 3 labels .*'cat' \(1\)"),
        (["-1", "0", "0"], r"'-1' \(1\)"),
    ],
)
def test_a_label_that_the_model_cannot_give_is_told(scorer: Any, labels: list[str | None], words: str) -> None:
    with pytest.raises(InputError, match=words):
        labelled(scorer(3), ALL, labels)
    named = scorer(3, classes=["a", "b", "c"])
    with pytest.raises(InputError, match=r"are a, b, c\. Take the column"):
        labelled(named, ALL, labels)


@pytest.mark.parametrize("label", ["tall", "nan", "inf", "1,5"])
def test_a_label_of_a_regression_is_a_finite_number(scorer: Any, label: str) -> None:
    model = scorer(1, "regression")
    assert labelled(model, ALL, ["1.5", "", None])[1].tolist() == [1.5]
    with pytest.raises(InputError, match=f"finite number; got '{label}'"):
        labelled(model, ALL, ["1", label, None])


def test_inputs_are_told_apart_by_what_they_hold() -> None:
    one = {"x": [1.0, 2.0], "picture": b"\x00", "at": np.datetime64("2026-01-01")}
    found = names_of([(one, "1"), (dict(reversed(one.items())), "1"), (one, "2"), ({**one, "x": [1.0, 2.5]}, "1")])
    assert found[0] == found[1]
    assert len(set(found.tolist())) == 3
