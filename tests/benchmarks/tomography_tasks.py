"""The tasks of the tomography benchmark: a model of its own, inputs with truth, and the perturbations of its spaces."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fashion
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from opmon import plugins
from opmon.robustness.codecs import Pictures, Unchanged
from opmon.robustness.evaluation import Evaluation, Model
from opmon.robustness.run import Codec
from opmon.scoring.session import open_session


@dataclass(frozen=True)
class Task:
    """One model and its inputs; ``spaces`` name four perturbations each, with their parameters."""

    name: str
    model: Model
    evaluation: Evaluation
    codec: Codec
    spaces: tuple[dict[str, Any], ...]


def perturbations(kind: str, names: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: plugins.make("perturbation", f"{kind}.{name}", options) for name, options in names.items()}


def image_task(folder: Path, cache: Path, inputs: int) -> Task:
    """Fashion-MNIST and a CNN of two convolutions, trained here."""
    weights = _trained(folder, cache)
    session = open_session(_cnn(weights), "cpu", 1)

    def model(x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(session.run(["scores"], {"x": x})[0])

    images = read_idx(folder / "t10k-images-idx3-ubyte.gz").reshape(-1, 1, 28, 28).astype(np.float32) / 255
    labels = read_idx(folder / "t10k-labels-idx1-ubyte.gz").astype(np.int64)
    chosen = np.random.default_rng(0).choice(len(images), inputs, replace=False)
    first = ("zoom", "brightness", "gaussian-blur", "rotate")
    second = ("contrast", "gaussian-noise", "translate", "occlusion")
    return Task(
        "image",
        model,
        Evaluation(images[chosen], labels[chosen]),
        Pictures.like(images),
        tuple(perturbations("image", {name: {} for name in names}) for names in (first, second)),
    )


def text_task(folder: Path, inputs: int) -> Task:
    """BBC news: the first 15 words, and a linear model on counts of what stands between blanks."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = [], []
    for number, section in enumerate(sorted(path for path in folder.iterdir() if path.is_dir())):
        for path in sorted(section.glob("*.txt")):
            words = re.sub(r"\s+", " ", path.read_text("utf-8", errors="replace")).split(" ")
            texts.append(" ".join(words[:15]))
            labels.append(number)
    order = np.random.default_rng(0).permutation(len(texts))
    all_texts, truth = np.array(texts, dtype=object)[order], np.array(labels)[order]
    learner = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+"), LogisticRegression(C=10, max_iter=1000)
    )
    learner.fit(all_texts[inputs:], truth[inputs:])
    edits = {"edits": (2, 4, 7, 10, 14)}
    names = {"typos": edits, "synonym": edits, "punctuation": edits, "contraction": edits}
    return Task(
        "text",
        learner.decision_function,
        Evaluation(all_texts[:inputs], truth[:inputs]),
        Unchanged(),
        (perturbations("text", names),),
    )


def table_task(folder: Path, inputs: int) -> Task:
    """US census employment in Massachusetts: gradient boosting, trained on one half of the reference."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame = pd.read_parquet(folder / "employment_MA_reference.pq")
    columns = [c for c in frame.columns if c.isupper() and c != "ESR"]
    table = frame[columns].to_numpy(np.float64)
    truth = frame["employed"].to_numpy(np.int64)
    order = np.random.default_rng(0).permutation(len(table))
    learner = HistGradientBoostingClassifier(random_state=0, max_iter=60).fit(
        table[order[:30_000]], truth[order[:30_000]]
    )
    held = order[-inputs:]
    options = {"categorical": tuple(i for i, c in enumerate(columns) if len(np.unique(table[:, i])) < 12)}
    first = dict.fromkeys(("noise", "missing", "shift", "swap"), options)
    second = dict.fromkeys(("scale", "noise", "missing", "swap"), options)
    return Task(
        "table",
        lambda x: np.log(np.maximum(learner.predict_proba(x), 1e-9)),
        Evaluation(table[held], truth[held]),
        Unchanged(),
        (perturbations("table", first), perturbations("table", second)),
    )


def read_idx(path: Path) -> NDArray[np.uint8]:
    with gzip.open(path) as file:
        content = file.read()
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3])


def _trained(folder: Path, cache: Path) -> list[NDArray[np.float32]]:
    path = cache / "tomography-cnn.npz"
    if not path.exists():
        try:
            weights = _train(folder)
        except ImportError:
            weights = _without_torch(folder, cache)
        np.savez(path, *weights)
    stored = np.load(path)
    return [stored[name] for name in stored.files]


def _train(folder: Path) -> list[NDArray[np.float32]]:
    import torch
    from torch import nn

    torch.manual_seed(0)
    images = torch.tensor(read_idx(folder / "train-images-idx3-ubyte.gz").reshape(-1, 1, 28, 28) / np.float32(255))
    labels = torch.tensor(read_idx(folder / "train-labels-idx1-ubyte.gz").astype(np.int64))
    layers: list[Callable[..., Any]] = [
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 64), nn.ReLU(), nn.Linear(64, 10),
    ]  # fmt: skip
    net = nn.Sequential(*layers)
    optimiser = torch.optim.Adam(net.parameters(), 2e-3)
    for _ in range(4):
        for batch in torch.randperm(len(images)).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimiser.step()
    return [parameter.detach().numpy() for parameter in net.parameters()]


def _without_torch(folder: Path, cache: Path) -> list[NDArray[np.float32]]:
    """The same layers as the scoring benchmark fits them: convolutions as drawn at random, dense layers fitted."""
    network = onnx.load(str(fashion.cnn(cache / "fashion-cnn.onnx", *fashion.load(folder, "train"))))
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in network.graph.initializer}
    return [found[f"{layer}.{part}"] for layer in ("c1", "c2", "d1", "d2") for part in ("weight", "bias")]


def _cnn(weights: list[NDArray[np.float32]]) -> bytes:
    names = ["w0", "b0", "w1", "b1", "w2", "b2", "w3", "b3"]
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("MaxPool", ["r0"], ["p0"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p0", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p1"], ["f"]),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["g"], transB=1),
        helper.make_node("Relu", ["g"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "w3", "b3"], ["scores"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "cnn",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 1, 28, 28])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 10])],
        [numpy_helper.from_array(array, name) for array, name in zip(weights, names, strict=True)],
    )
    model: onnx.ModelProto = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(model.SerializeToString())
