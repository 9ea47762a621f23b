"""A file that this machine cannot run as it is gives the same answers after a change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pytest
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from opmon.scoring.graph.adapting import adapted
from opmon.scoring.graph.export import write_monitor_graph
from opmon.scoring.graph.file import class_names, read_model
from opmon.scoring.graph.locales import locale_is_there, locales_of
from opmon.scoring.heads.confidence import Confidence
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import open_session
from opmon.types import Batch

TEXTS = ["Good Ärger", "GOOD fun", "bad ÄRGER", "BAD Fun", "good", "bad"]
SIDES = np.array(["good", "good", "bad", "bad", "good", "bad"])


@pytest.fixture
def text_model(tmp_path: Path) -> Path:
    """Words to a class, in lower case by a locale that no machine has."""
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=99)).fit(TEXTS, SIDES)
    locale = {TfidfVectorizer: {"locale": "xx_YY.UTF-8"}}
    converted = to_onnx(model, initial_types=[("text", StringTensorType([None, 1]))], options=locale)
    assert locales_of(converted) == {"xx_YY.UTF-8"}
    path = tmp_path / "model.onnx"
    path.write_bytes(converted.SerializeToString())
    return path


def test_a_locale_that_is_not_there_is_replaced(text_model) -> None:
    assert not locale_is_there("xx_YY.UTF-8")
    scorer = Scorer.open(text_model, "classification", device="cpu")
    (scored,) = scorer.score([Batch(0, 0, pa.record_batch({"text": pa.array(TEXTS)}))])
    assert scored.predictions.tolist() == SIDES.tolist()


def test_a_locale_that_is_not_there_is_replaced_in_the_monitor_graph_too(text_model, tmp_path) -> None:
    target = tmp_path / "monitor.onnx"
    write_monitor_graph(text_model, target, "classification", {"inside": Confidence()})
    session = open_session(target, "cpu")
    label, _ = session.run(["output_label", "inside"], {"text": np.array(TEXTS, dtype=object)[:, None]})
    assert label.tolist() == SIDES.tolist()


def test_a_locale_that_is_there_is_kept(text_model) -> None:
    model = read_model(text_model)
    known = next(name for name in ("C.UTF-8", "en_US.UTF-8", "C") if locale_is_there(name))
    (node,) = (node for node in model.graph.node if node.op_type == "StringNormalizer")
    next(item for item in node.attribute if item.name == "locale").s = known.encode()
    mended = adapted(model)
    assert mended is None or locales_of(mended) == {known}


def test_labels_in_one_row_are_one_for_each_input(tmp_path) -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(centre, 1, (50, 3)) for centre in (0, 4, 8)]).astype(np.float32)
    model = QuadraticDiscriminantAnalysis().fit(rows, np.repeat([1, 2, 3], 50))
    path = tmp_path / "model.onnx"
    path.write_bytes(to_onnx(model, rows[:1], options={"zipmap": False}).SerializeToString())
    shape = read_model(path).graph.output[0].type.tensor_type.shape.dim
    assert shape[0].dim_value == 1  # so it is exported
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 3)
    (scored,) = Scorer.open(path, "classification", device="cpu").score([Batch(0, 0, pa.record_batch({"X": lists}))])
    assert scored.predictions.tolist() == model.predict(rows).astype(str).tolist()


def test_dictionaries_of_a_model_with_weights_beside_it_become_a_matrix(tmp_path) -> None:
    weights = np.eye(4, 3, dtype=np.float32) * 5
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["p"], axis=1),
            helper.make_node("ZipMap", ["p"], ["out"], domain="ai.onnx.ml", classlabels_int64s=[7, 5, 3]),
        ],
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [
            helper.make_value_info(
                "out",
                helper.make_sequence_type_proto(
                    helper.make_map_type_proto(
                        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, None)
                    )
                ),
            )
        ],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    path = tmp_path / "model.onnx"
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    onnx.save_model(model, str(path), save_as_external_data=True, location="model.data", size_threshold=1)
    mended = adapted(read_model(path))
    assert class_names(mended) == ("7", "5", "3")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.eye(4, dtype=np.float32).ravel()), 4)
    (scored,) = Scorer.open(path, "classification", device="cpu").score([Batch(0, 0, pa.record_batch({"x": lists}))])
    assert scored.predictions[:3].tolist() == ["7", "5", "3"]
