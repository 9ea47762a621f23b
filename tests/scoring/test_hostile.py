"""Models and inputs as they should not be: one bad input costs only itself, and an error says what to change."""

from __future__ import annotations

import io

import numpy as np
import onnx
import pyarrow as pa
import pytest
from onnx import TensorProto, helper
from PIL import Image

from opmon.errors import ModelError
from opmon.scoring.graph.export import write_monitor_graph
from opmon.scoring.heads.confidence import Confidence
from opmon.scoring.heads.dsa import DistanceSurprise
from opmon.scoring.heads.lsa import LikelihoodSurprise
from opmon.scoring.inputs.images import ImageInput
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import open_session
from opmon.types import Batch

HEADS = {"confidence": Confidence(), "dsa": DistanceSurprise(), "lsa": LikelihoodSurprise()}
HEAD = [helper.make_node("Relu", ["g"], ["hidden"]), helper.make_node("Gemm", ["hidden", "w2"], ["y"])]


def weights(**more: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {"w1": rng.normal(size=(6, 8)), "w2": rng.normal(size=(8, 4))}
    return {name: value.astype(np.float32) for name, value in made.items()} | more


def one(scorer: Scorer, **columns: pa.Array):
    (scored,) = scorer.score([Batch(0, 0, pa.RecordBatch.from_pydict(columns))])
    return scored


@pytest.fixture
def words(graph):
    """Token numbers [n, t] below 50 -> embeddings, their mean -> 4 classes."""
    nodes = [
        helper.make_node("Gather", ["e", "ids"], ["v"]),
        helper.make_node("ReduceMean", ["v"], ["m"], axes=[1], keepdims=0),
        helper.make_node("Gemm", ["m", "w1"], ["g"]),
        *HEAD,
    ]
    table = np.random.default_rng(1).normal(size=(50, 6)).astype(np.float32)
    return graph(
        nodes, [("ids", TensorProto.INT64, ["n", "t"])], [("y", TensorProto.FLOAT, ["n", 4])], weights(e=table)
    )


@pytest.fixture
def tokens() -> np.ndarray:
    return np.random.default_rng(2).integers(0, 50, (300, 7))


@pytest.mark.parametrize("lanes", [1, 2])
def test_tokens_outside_of_the_vocabulary_cost_their_inputs_alone(words, tokens, lanes) -> None:
    expected = one(Scorer.open(words, "classification", device="cpu"), ids=pa.array(tokens.tolist()))
    tokens[17, 3], tokens[200, 0] = 50, -51
    scorer = Scorer.open(words, "classification", device="cpu", batch_size=64, lanes=lanes)
    found = one(scorer, ids=pa.array(tokens.tolist()))
    good = np.delete(np.arange(300), [17, 200])
    assert (found.rows == good).all()
    assert (found.predictions == expected.predictions[good]).all()
    assert found.variables["confidence"] == pytest.approx(expected.variables["confidence"][good], abs=1e-6)
    assert sorted(found.rejected) == [17, 200]
    assert "out of data bounds, idx=50" in found.rejected[17]


def test_a_model_that_fails_on_every_input_is_an_error(words, tokens) -> None:
    with pytest.raises(ModelError, match="out of data bounds"):
        one(Scorer.open(words, "classification", device="cpu"), ids=pa.array((tokens + 100).tolist()))


def test_lists_of_unlike_length_are_told_what_to_do(words, tokens) -> None:
    lists = [row[: 3 + i % 2].tolist() for i, row in enumerate(tokens)]
    found = one(Scorer.open(words, "classification", device="cpu"), ids=pa.array(lists))
    assert len(found.rows) == 150
    assert "has 4 values, not 3" in found.rejected[1]
    assert "pad them to one length" in found.rejected[1]


@pytest.mark.parametrize("row", [1, 8])
def test_a_model_with_one_input_at_a_time_inside(graph, row) -> None:
    """The file says that the batch may vary, and a Reshape in it says that it is one."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1"], ["g0"]),
        helper.make_node("Reshape", ["g0", "shape"], ["g"]),
        *HEAD,
    ]
    path = graph(
        nodes,
        [("x", TensorProto.FLOAT, ["n", 6])],
        [("y", TensorProto.FLOAT, ["n", 4])],
        weights(shape=np.array([1, 8])),
    )
    rows = np.random.default_rng(3).normal(size=(40 * row, 6)).astype(np.float32)
    scorer = Scorer.open(path, "classification", device="cpu")
    for _ in range(2):
        found = one(scorer, x=pa.array(rows.tolist()))
        assert len(found.rows) == len(rows)
    expected = [scorer.session.run(["y"], {"x": rows[i : i + 1]})[0].argmax() for i in range(len(rows))]
    assert found.predictions.tolist() == [str(number) for number in expected]


def test_an_output_that_mixes_the_inputs_of_a_batch_is_given_them_one_by_one(graph) -> None:
    """A mean over the batch: one row for many inputs."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1"], ["g0"]),
        helper.make_node("ReduceMean", ["g0"], ["g"], axes=[0], keepdims=1),
        *HEAD,
    ]
    path = graph(nodes, [("x", TensorProto.FLOAT, ["n", 6])], [("y", TensorProto.FLOAT, ["n", 4])], weights())
    rows = np.random.default_rng(3).normal(size=(30, 6)).astype(np.float32)
    found = one(Scorer.open(path, "classification", device="cpu"), x=pa.array(rows.tolist()))
    assert len(found.predictions) == 30


@pytest.mark.parametrize("name", ["dsa", "StatefulPartitionedCall:0", "the scores é/1", "opmon"])
def test_outputs_of_any_name_are_compiled(mlp, fitted, fed, outputs, tmp_path, name) -> None:
    path = mlp()
    model = onnx.load(str(path))
    model.graph.node[-1].output[0] = model.graph.output[0].name = name
    onnx.save(model, str(path))
    rows = np.random.default_rng(1).normal(size=(200, 6)).astype(np.float32)
    names = write_monitor_graph(path, tmp_path / "out.onnx", "classification", HEADS, fitted(path, rows))
    assert names[0] == name
    found = outputs(open_session(tmp_path / "out.onnx", "cpu", threads=1), rows)
    assert (found[name] == open_session(path, "cpu", threads=1).run([name], {"x": rows})[0]).all()


def test_an_output_without_a_shape_is_compiled(mlp, fitted, tmp_path) -> None:
    path = mlp()
    model = onnx.load(str(path))
    model.graph.output.append(helper.make_tensor_value_info("hidden", TensorProto.FLOAT, None))
    onnx.save(model, str(path))
    rows = np.random.default_rng(1).normal(size=(200, 6)).astype(np.float32)
    reference = fitted(path, rows, output="scores")
    names = write_monitor_graph(path, tmp_path / "out.onnx", "classification", HEADS, reference, output="scores")
    assert names == ("scores", "hidden", "confidence", "dsa", "lsa")


def test_scores_with_axes_between_are_compiled(graph, fitted, outputs, tmp_path) -> None:
    nodes = [helper.make_node("Gemm", ["x", "w1"], ["g"]), HEAD[0], helper.make_node("Gemm", ["hidden", "w2"], ["s"])]
    nodes.append(helper.make_node("Unsqueeze", ["s", "one"], ["y"]))
    shapes = [("x", TensorProto.FLOAT, ["n", 6])], [("y", TensorProto.FLOAT, ["n", 1, 4])]
    path = graph(nodes, *shapes, weights(one=np.array([1])))
    rows = np.random.default_rng(1).normal(size=(200, 6)).astype(np.float32)
    write_monitor_graph(path, tmp_path / "out.onnx", "classification", HEADS, fitted(path, rows))
    assert outputs(open_session(tmp_path / "out.onnx", "cpu"), rows)["dsa"].shape == (200,)


def picture(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    data = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(data, kind)
    return data.getvalue()


@pytest.mark.parametrize("batch", ["n", 1])
def test_corrupt_pictures_among_pictures_of_any_size(graph, batch) -> None:
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w0"], ["g"]),
        *HEAD,
    ]
    more = {"w0": rng.normal(size=(3 * 16 * 16, 8)).astype(np.float32)}
    shapes = [("x", TensorProto.FLOAT, [batch, 3, 16, 16])], [("y", TensorProto.FLOAT, [batch, 4])]
    path = graph(nodes, *shapes, weights(**more))
    cells = [picture(rng.integers(0, 255, (16, 16, 3))) for _ in range(12)]
    cells[1:6] = [b"", b"not a picture", cells[3][:60], None, b"nor this"]
    cells[6] = picture(rng.integers(0, 255, (40, 9)), "JPEG")
    cells[7] = picture(rng.integers(0, 255, (5, 5, 4)))
    found = one(
        Scorer.open(path, "classification", device="cpu", reading=ImageInput("img")), img=pa.array(cells, pa.binary())
    )
    assert found.rows.tolist() == [0, 6, 7, 8, 9, 10, 11]
    assert sorted(found.rejected) == [1, 2, 3, 4, 5]
    assert found.rejected[2] == found.rejected[5]  # the same fault in the same words, so that it can be counted


def test_softmax_over_one_column_is_one_class(graph) -> None:
    nodes = [helper.make_node("Gemm", ["x", "w1"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])]
    shapes = [("x", TensorProto.FLOAT, ["n", 6])], [("y", TensorProto.FLOAT, ["n", 1])]
    path = graph(nodes, *shapes, {"w1": np.ones((6, 1), np.float32)})
    found = one(Scorer.open(path, "classification", device="cpu"), x=pa.array(np.eye(6).tolist()))
    assert set(found.predictions.tolist()) == {"1"}


def test_a_row_that_is_no_probabilities_costs_only_itself(graph) -> None:
    """As of a classifier whose votes are all zero."""
    shape = (TensorProto.FLOAT, ["n", 3])
    path = graph([helper.make_node("Identity", ["x"], ["y"])], [("x", *shape)], [("y", *shape)])
    scorer = Scorer.open(path, "classification", device="cpu", scores="probabilities")
    found = one(scorer, x=pa.array([[0.2, 0.3, 0.5], [0, 0, 0], [1, 0, 0], [0.5, 0.5, 0]], pa.list_(pa.float32())))
    assert found.rows.tolist() == [0, 2, 3]
    assert "no probabilities" in found.rejected[1]
