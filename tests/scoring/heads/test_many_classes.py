"""Models of so many classes that several of them share a product of the graph."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.scoring.graph.routes import TOGETHER, codes, forbidding, together
from opmon.scoring.heads.combined import Combined
from opmon.scoring.heads.confidence import Confidence
from opmon.scoring.heads.dsa import DistanceSurprise
from opmon.scoring.heads.lsa import LikelihoodSurprise
from opmon.scoring.reference.densities import densities
from opmon.scoring.reference.distances import distances_to_others
from opmon.scoring.reference.fitted import Reference, model_hash
from opmon.scoring.reference.fitting import with_limits
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import open_session
from opmon.testing import surprise

CLASSES = 1000
HEADS = {
    "confidence": Confidence(),
    "dsa": DistanceSurprise(),
    "dsa_input": DistanceSurprise("input"),
    "lsa": LikelihoodSurprise(),
    "combined": Combined(),
}


@pytest.fixture
def later() -> np.ndarray:
    return np.random.default_rng(7).normal(size=(250, 6)).astype(np.float32)


def reference_of(path, inputs, classes=CLASSES) -> Reference:
    """The activations and predictions of the model in a file."""
    model = onnx.load(str(path))
    model.graph.output.append(onnx.helper.make_tensor_value_info("hidden", 1, ["n", None]))
    names = ["hidden", model.graph.output[0].name]
    traces, scores = open_session(model.SerializeToString(), "cpu").run(names, {"x": inputs})
    predicted = scores.argmax(axis=1)
    distances = distances_to_others(traces, predicted)
    plain = Reference(model_hash(path), "hidden", "classification", classes, traces, predicted, distances)
    return with_limits(plain, np.random.default_rng(0))


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_a_thousand_classes_are_compiled_exactly(mlp, compiled, outputs, later, offset) -> None:
    path = mlp(classes=CLASSES, offset=offset, hidden=24)
    reference = reference_of(path, np.random.default_rng(1).normal(size=(6000, 6)).astype(np.float32))
    asked = np.concatenate([later, np.random.default_rng(1).normal(size=(6000, 6))[:50].astype(np.float32)])
    found = outputs(compiled(path, HEADS, reference), asked)
    about = reference_of(path, asked)
    kept, fitted = densities(reference)
    assert len(reference.classes) > 100
    assert (found["scores"] == open_session(path, "cpu", threads=1).run(["scores"], {"x": asked})[0]).all()
    for i, (activation, number) in enumerate(zip(about.traces, about.predicted.tolist(), strict=True)):
        if number not in reference.classes:
            assert all(found[name][i] == 1 for name in ("dsa", "dsa_input", "lsa"))
            continue
        for name, denominator in (("dsa_raw", "reference"), ("dsa_input_raw", "input")):
            expected = surprise.dsa(reference.traces, reference.predicted, activation, number, denominator)
            assert found[name][i] == pytest.approx(expected, rel=1e-5, abs=0)
        expected = fitted[number].surprise(activation[None, kept].astype(np.float64))[0]
        assert found["lsa_raw"][i] == pytest.approx(expected, abs=2e-3)
    trust = (1 - found["confidence"]) * (1 - found["dsa"])
    assert found["combined"] == pytest.approx(np.maximum(1 - trust, 1e-6), abs=1e-5)


def test_densities_of_a_class_among_others_are_those_of_the_definition(mlp, compiled, outputs, later) -> None:
    """Classes with a covariance of their own, several in one product."""
    path = mlp(classes=40)
    reference = reference_of(path, np.random.default_rng(1).normal(size=(3000, 6)).astype(np.float32), classes=40)
    found, about = outputs(compiled(path, HEADS, reference), later), reference_of(path, later, classes=40)
    kept, _ = densities(reference)
    sizes = np.bincount(reference.predicted, minlength=40)
    chosen = [i for i in range(len(later)) if sizes[about.predicted[i]] > 40]
    assert len(set(about.predicted[chosen].tolist())) > 5
    for i in chosen:
        expected = surprise.lsa(reference.traces, reference.predicted, about.traces[i], int(about.predicted[i]), kept)
        assert found["lsa_raw"][i] == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("size", [1, 3, 250])
def test_the_same_in_every_opset_and_size_of_batch(mlp, compiled, outputs, later, opset, size) -> None:
    path, usual = mlp(classes=300, opset=opset, name="now"), mlp(classes=300, name="usual")
    rows = np.random.default_rng(1).normal(size=(2000, 6)).astype(np.float32)
    found = outputs(compiled(path, HEADS, reference_of(path, rows, 300)), later[:size])
    expected = outputs(compiled(usual, HEADS, reference_of(usual, rows, 300)), later)
    for name in HEADS:
        assert found[name] == pytest.approx(expected[name][:size], abs=1e-5)


def test_a_round_of_many_classes_gives_what_the_compiled_file_gives(mlp, compiled, outputs, fed, later) -> None:
    """Some of it sorted by class outside of the graph."""
    path = mlp(classes=300, hidden=24)
    reference = reference_of(path, np.random.default_rng(1).normal(size=(3000, 6)).astype(np.float32), 300)
    scorer = Scorer.open(path, "classification", device="cpu", heads=HEADS, reference=reference)
    assert set(scorer.functions) == {"dsa", "lsa"}
    found, expected = next(scorer.score(fed(later))), outputs(compiled(path, HEADS, reference), later)
    for name in HEADS:
        assert found.variables[name] == pytest.approx(expected[name], abs=1e-5)


def test_no_product_has_more_columns_than_classes_together(mlp, compiled, later, tmp_path) -> None:
    """What a batch needs of memory does not grow with the traces of all classes."""
    path = mlp(classes=CLASSES, hidden=24)
    reference = reference_of(path, np.random.default_rng(1).normal(size=(20_000, 6)).astype(np.float32))
    compiled(
        path,
        {"dsa": DistanceSurprise(), "dsa_input": DistanceSurprise("input"), "lsa": LikelihoodSurprise()},
        reference,
    )
    model = onnx.load(str(tmp_path / "mlp-monitor.onnx"))
    shapes = {item.name: tuple(item.dims) for item in model.graph.initializer}
    widest = max(shapes[node.input[1]][1] for node in model.graph.node if node.op_type == "MatMul")
    largest = int(np.bincount(reference.predicted).max())
    assert widest <= max(TOGETHER, largest) + 64


@given(st.dictionaries(st.integers(0, 500), st.integers(1, 60), min_size=1), st.integers(1, 100))
def test_classes_go_together_up_to_a_limit(sizes, most) -> None:
    found = together(sizes, most)
    assert sorted(number for some in found for number in some) == sorted(sizes)
    assert all(len(some) == 1 or sum(sizes[number] for number in some) <= most for some in found)


@given(st.integers(1, 400))
def test_a_code_meets_its_own_class_alone(count) -> None:
    product = codes(count) @ forbidding(np.arange(count), count).T
    assert (np.diag(product) == 0).all()
    assert (product[~np.eye(count, dtype=bool)] <= -1e30).all()
