"""Fashion-MNIST, and a small CNN trained on it, as ONNX: with torch where it is installed, else with scikit-learn."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path("/usr/share/datasets/fashion-mnist")  # Debian's package dataset-fashion-mnist
Array = NDArray[Any]
HIDDEN = 64


def load(folder: Path, part: str) -> tuple[Array, Array]:
    """Images [n, 784] of bytes and their classes; ``part`` is ``train`` or ``t10k``."""
    images = _idx(folder / f"{part}-images-idx3-ubyte.gz")
    return images.reshape(len(images), -1), _idx(folder / f"{part}-labels-idx1-ubyte.gz").astype(np.int64)


def _idx(path: Path) -> Array:
    data = gzip.decompress(path.read_bytes())
    axes = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes)]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def cnn(path: Path, images: Array, targets: Array) -> Path:
    """The trained network, from ``path`` where it was written before.

    28 × 28 bytes -> Conv 16, Conv 32 (3 × 3, rectified, pooled) -> 64 rectified neurons -> 10 logits.
    """
    if not path.exists():
        try:
            weights = _with_torch(images, targets)
        except ImportError:
            weights = _with_sklearn(images, targets)
        onnx.save(network(weights), str(path))
    return path


def _with_torch(images: Array, targets: Array) -> Mapping[str, Array]:
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 49, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, 10),
    )
    x = torch.from_numpy(images.reshape(-1, 1, 28, 28).astype(np.float32) / 255)
    y = torch.from_numpy(targets)
    optimiser = torch.optim.Adam(layers.parameters(), 1e-3)
    for _ in range(2):
        for rows in torch.randperm(len(x)).split(128):
            loss = nn.functional.cross_entropy(layers(x[rows]), y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    made = {name: value.detach().numpy() for name, value in layers.state_dict().items()}
    names = {"0": "c1", "3": "c2", "7": "d1", "9": "d2"}
    return {f"{names[key.split('.')[0]]}.{key.split('.')[1]}": value for key, value in made.items()}


def _with_sklearn(images: Array, targets: Array) -> Mapping[str, Array]:
    """Convolutions as they were drawn at random; the dense layers are fitted to what they give."""
    from sklearn.neural_network import MLPClassifier

    from opmon.scoring.session import open_session

    rng = np.random.default_rng(0)
    weights = {
        "c1.weight": rng.normal(size=(16, 1, 3, 3)) / 3,
        "c1.bias": np.zeros(16),
        "c2.weight": rng.normal(size=(32, 16, 3, 3)) / 12,
        "c2.bias": np.zeros(32),
        "d1.weight": np.zeros((HIDDEN, 1568)),
        "d1.bias": np.zeros(HIDDEN),
        "d2.weight": np.zeros((10, HIDDEN)),
        "d2.bias": np.zeros(10),
    }
    body = network(weights)
    body.graph.output.append(helper.make_tensor_value_info("flat", TensorProto.FLOAT, ["n", 1568]))
    session = open_session(body.SerializeToString(), "cpu")
    rows = rng.permutation(len(images))[:10_000]
    features = session.run(["flat"], {"x": images[rows].reshape(-1, 1, 28, 28).astype(np.float32)})[0]
    fitted = MLPClassifier((HIDDEN,), max_iter=8, random_state=0).fit(features, targets[rows])
    for i in (0, 1):
        weights[f"d{i + 1}.weight"], weights[f"d{i + 1}.bias"] = fitted.coefs_[i].T, fitted.intercepts_[i]
    return weights


def network(weights: Mapping[str, Array]) -> Any:
    same = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    halved = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["scaled"]),
        helper.make_node("Conv", ["scaled", "c1.weight", "c1.bias"], ["c1"], **same),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], **halved),
        helper.make_node("Conv", ["p1", "c2.weight", "c2.bias"], ["c2"], **same),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("MaxPool", ["r2"], ["p2"], **halved),
        helper.make_node("Flatten", ["p2"], ["flat"]),
        helper.make_node("Gemm", ["flat", "d1.weight", "d1.bias"], ["d1"], transB=1),
        helper.make_node("Relu", ["d1"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "d2.weight", "d2.bias"], ["logits"], transB=1),
    ]
    return model(nodes, {**weights, "scale": np.array(1 / 255)}, ["n", 1, 28, 28], ["n", 10])


def model(nodes: list[Any], weights: Mapping[str, Array], given: list[Any], made: list[Any]) -> Any:
    """A graph from ``x`` to ``logits``."""
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, made)],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in weights.items()],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


def resnet18(classes: int = 10) -> Any:
    """ResNet-18 for 224 × 224 colour images, batch normalisation folded in, weights at random."""
    rng, nodes, weights = np.random.default_rng(0), [], {}

    def conv(x: str, name: str, given: int, made: int, size: int, stride: int = 1, relu: bool = True) -> str:
        weights[f"{name}.w"] = rng.normal(size=(made, given, size, size)) * np.sqrt(1 / (given * size * size))
        weights[f"{name}.b"] = np.zeros(made)
        pad = [size // 2] * 4
        nodes.append(helper.make_node("Conv", [x, f"{name}.w", f"{name}.b"], [name], pads=pad, strides=[stride] * 2))
        if relu:
            nodes.append(helper.make_node("Relu", [name], [f"{name}.r"]))
        return f"{name}.r" if relu else name

    x = conv("x", "stem", 3, 64, 7, 2)
    nodes.append(helper.make_node("MaxPool", [x], ["pool"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]))
    x, width = "pool", 64
    for i, made in enumerate((64, 64, 128, 128, 256, 256, 512, 512)):
        stride = 1 if made == width else 2
        y = conv(x, f"b{i}.1", width, made, 3, stride)
        y = conv(y, f"b{i}.2", made, made, 3, relu=False)
        side = x if made == width else conv(x, f"b{i}.side", width, made, 1, stride, relu=False)
        nodes.append(helper.make_node("Add", [y, side], [f"b{i}.sum"]))
        nodes.append(helper.make_node("Relu", [f"b{i}.sum"], [f"b{i}"]))
        x, width = f"b{i}", made
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["averaged"]))
    nodes.append(helper.make_node("Flatten", ["averaged"], ["hidden"]))
    weights |= {"head.w": rng.normal(size=(512, classes)) / 23, "head.b": np.zeros(classes)}
    nodes.append(helper.make_node("Gemm", ["hidden", "head.w", "head.b"], ["logits"]))
    return model(nodes, weights, ["n", 3, 224, 224], ["n", classes])
