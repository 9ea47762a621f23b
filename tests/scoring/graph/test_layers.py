from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeClassifier

from opmon.errors import ModelError
from opmon.scoring.conversion.converting import convert
from opmon.scoring.graph.file import read_model
from opmon.scoring.graph.layers import find_layer, layers

FLOAT = TensorProto.FLOAT


def node(operator: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs.split(), [output], **attributes)


@pytest.fixture
def convolutions(graph):
    """Two convolutions, with a residual connection, pooled over space, and a dense layer."""
    rng = np.random.default_rng(0)
    weights = {"k1": rng.normal(size=(4, 1, 3, 3)), "k2": rng.normal(size=(4, 4, 3, 3)), "w": rng.normal(size=(4, 3))}
    return graph(
        [
            node("Conv", "x k1", "c1", pads=[1] * 4),
            node("Relu", "c1", "r1"),
            node("Conv", "r1 k2", "c2", pads=[1] * 4),
            node("Add", "c2 r1", "sum"),
            node("Relu", "sum", "r2"),
            node("GlobalAveragePool", "r2", "pooled"),
            node("Flatten", "pooled", "flat"),
            node("Gemm", "flat w", "logits"),
        ],
        [("x", FLOAT, ["n", 1, 8, 8])],
        [("logits", FLOAT, ["n", 3])],
        {key: value.astype(np.float32) for key, value in weights.items()},
    )


@pytest.fixture
def transformer(graph):
    """Self-attention over 5 tokens of 4 numbers; the first token is classified."""
    rng = np.random.default_rng(0)
    weights: dict[str, Any] = {name: rng.normal(size=(4, 4)).astype(np.float32) for name in "qkvo"}
    weights |= {"head": rng.normal(size=(4, 3)).astype(np.float32), "zero": np.array(0)}
    return graph(
        [
            node("MatMul", "x q", "Q"),
            node("MatMul", "x k", "K"),
            node("MatMul", "x v", "V"),
            node("Transpose", "K", "Kt", perm=[0, 2, 1]),
            node("MatMul", "Q Kt", "scores"),
            node("Softmax", "scores", "weights", axis=-1),
            node("MatMul", "weights V", "mixed"),
            node("MatMul", "mixed o", "out"),
            node("Add", "out x", "encoded"),
            node("Gather", "encoded zero", "first", axis=1),
            node("MatMul", "first head", "logits"),
        ],
        [("x", FLOAT, ["n", 5, 4])],
        [("logits", FLOAT, ["n", 3])],
        weights,
    )


def test_the_last_hidden_layer_of_convolutions(convolutions) -> None:
    model = read_model(convolutions)
    layer = find_layer(model, "logits")
    assert (layer.name, layer.width, layer.feeds) == ("flat", 4, "Gemm")
    assert [found.name for found in layers(model, "logits")] == ["r1", "flat"]


def test_a_named_convolution_has_its_channels_as_neurons(convolutions) -> None:
    layer = find_layer(read_model(convolutions), "logits", "r2")
    assert (layer.width, layer.channels_first) == (4, True)


def test_the_classified_token_of_a_transformer(transformer) -> None:
    layer = find_layer(read_model(transformer), "logits")
    assert (layer.name, layer.width) == ("first", 4)
    encoded = find_layer(read_model(transformer), "logits", "encoded")
    assert (encoded.width, encoded.channels_first) == (4, False)


@pytest.mark.parametrize("kind", [MLPClassifier, MLPRegressor])
def test_the_hidden_layer_of_a_scikit_learn_network(kind, tmp_path) -> None:
    images, targets = load_digits(return_X_y=True)
    network = kind(hidden_layer_sizes=(7,), max_iter=2).fit(images[:200], targets[:200])
    path = tmp_path / "mlp.onnx"
    path.write_bytes(convert(network, None))
    model = read_model(path)
    score = [output.name for output in model.graph.output][-1]
    layer = find_layer(model, score)
    assert layer.made_by == "Relu"
    assert layer.feeds in ("MatMul", "Gemm")


@pytest.mark.parametrize("model", [LogisticRegression(max_iter=5), DecisionTreeClassifier(max_depth=2)])
def test_models_without_hidden_layers_say_what_they_can_have(model, tmp_path) -> None:
    images, targets = load_digits(return_X_y=True)
    path = tmp_path / "plain.onnx"
    path.write_bytes(convert(model.fit(images[:200], targets[:200]), None))
    assert layers(read_model(path), "probabilities") == ()
    with pytest.raises(ModelError, match=r"no hidden layer.*confidence, margin, entropy and gini do not"):
        find_layer(read_model(path), "probabilities")


def test_an_unknown_layer_names_those_there_are(convolutions) -> None:
    with pytest.raises(ModelError, match="r1, flat"):
        find_layer(read_model(convolutions), "logits", "relu_7")


def test_weights_made_of_constants_are_weights(graph) -> None:
    path = graph(
        [
            node("MatMul", "x w", "h"),
            node("Relu", "h", "r"),
            node("Transpose", "w2", "w2t"),
            node("MatMul", "r w2t", "logits"),
        ],
        [("x", FLOAT, ["n", 4])],
        [("logits", FLOAT, ["n", 3])],
        {"w": np.ones((4, 2), np.float32), "w2": np.ones((3, 2), np.float32)},
    )
    assert find_layer(onnx.load(str(path)), "logits").name == "r"
