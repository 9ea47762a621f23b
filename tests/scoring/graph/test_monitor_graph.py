from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import pytest

from opmon import plugins
from opmon.abc import Head
from opmon.errors import InputError, ModelError
from opmon.scoring.graph.export import write_monitor_graph
from opmon.scoring.heads.confidence import Confidence
from opmon.scoring.heads.dsa import DistanceSurprise
from opmon.scoring.heads.entropy import Entropy
from opmon.scoring.heads.gini import Gini
from opmon.scoring.heads.lsa import LikelihoodSurprise
from opmon.scoring.heads.margin import Margin
from opmon.scoring.heads.named_autoencoder import NamedAutoencoder
from opmon.scoring.outputs.variables import sigmoid, softmax, variables_of
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import open_session
from opmon.testing import surprise

FREE = {"confidence": Confidence(), "margin": Margin(), "entropy": Entropy(), "gini": Gini()}
MANY = 150


@pytest.fixture
def later() -> np.ndarray:
    return np.random.default_rng(2).normal(size=(300, 6)).astype(np.float32)


@dataclass(frozen=True)
class Norm(Head):
    """A head of a plugin that is no graph: how long the activations are, at the layer that is traced."""

    def function(self, reference):
        return lambda activations, predicted: np.linalg.norm(activations, axis=1)


@pytest.mark.parametrize(("classes", "then"), [(4, None), (4, "Softmax"), (4, "LogSoftmax"), (1, None), (1, "Sigmoid")])
def test_what_comes_with_the_probabilities_is_the_same_in_the_graph(
    mlp, compiled, outputs, later, classes, then
) -> None:
    found = outputs(compiled(mlp(classes=classes, then=then), FREE), later)
    scores = found["scores" if then is None else "answers"].astype(np.float64)
    if then is None:
        scores = sigmoid(scores) if classes == 1 else softmax(scores)
    elif then == "LogSoftmax":
        scores = np.exp(scores)
    for name, values in variables_of(np.hstack([1 - scores, scores]) if classes == 1 else scores).items():
        assert found[name] == pytest.approx(values, abs=2e-6)


def test_a_compiled_file_is_scored_as_it_is(mlp, fed, fitted, later, tmp_path) -> None:
    """Its variables are known from the file: no reference, no configuration."""
    path, target = mlp(), tmp_path / "monitor.onnx"
    heads = {"dsa": DistanceSurprise(), "lsa": LikelihoodSurprise()}
    reference = fitted(path, later)
    write_monitor_graph(path, target, "classification", {**heads, **FREE}, reference)
    whole = next(iter(Scorer.open(target, "classification", device="cpu").score(fed(later))))
    beside = Scorer.open(path, "classification", device="cpu", heads=heads, reference=reference)
    expected = next(iter(beside.score(fed(later))))
    assert (whole.predictions == expected.predictions).all()
    assert set(whole.variables) == {"confidence", "margin", "entropy", "gini", "dsa", "lsa"}
    for name, values in expected.variables.items():
        assert whole.variables[name] == pytest.approx(values, abs=1e-6)


def test_weights_above_the_limit_of_a_file_go_beside_it(mlp, fitted, outputs, later, tmp_path) -> None:
    path, target = mlp(), tmp_path / "monitor.onnx"
    reference, heads = fitted(path, later), {"lsa": LikelihoodSurprise()}
    write_monitor_graph(path, target, "classification", heads, reference, one_file=100)
    assert (tmp_path / "monitor.onnx.data").stat().st_size > 1000
    plain = tmp_path / "plain.onnx"
    write_monitor_graph(path, plain, "classification", heads, reference)
    first, second = (outputs(open_session(file, "cpu"), later) for file in (target, plain))
    assert (first["lsa"] == second["lsa"]).all()


def test_a_model_with_weights_beside_it_is_scored_with_heads(mlp, fed, fitted, later, tmp_path) -> None:
    folder = tmp_path / "outside"
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save_model(onnx.load(str(mlp())), str(path), save_as_external_data=True, location="weights", size_threshold=0)
    heads = {"dsa": DistanceSurprise()}
    scorer = Scorer.open(path, "classification", device="cpu", heads=heads, reference=fitted(path, later))
    assert len(next(iter(scorer.score(fed(later)))).variables["dsa"]) == 300


def test_the_graph_is_no_place_for_the_model_itself(mlp) -> None:
    with pytest.raises(InputError, match="must not overwrite"):
        write_monitor_graph(mlp(), mlp(), "classification", FREE)


def test_an_output_of_the_models_own_keeps_its_name(mlp, compiled, outputs, later) -> None:
    path = mlp()
    model = onnx.load(str(path))
    model.graph.node[-1].output[0] = model.graph.output[0].name = "confidence"
    onnx.save(model, str(path))
    found = outputs(compiled(path, {"confidence": Confidence()}), later)
    assert found["confidence"].shape == (300, 4)
    assert found["opmon_confidence"].shape == (300,)


def test_many_classes_are_sorted_outside_of_the_graph(mlp, fed, fitted) -> None:
    rng = np.random.default_rng(3)
    path = mlp(classes=MANY)
    reference = fitted(path, rng.normal(size=(4000, 6)))
    heads = {"dsa": DistanceSurprise(), "lsa": LikelihoodSurprise()}
    scorer = Scorer.open(path, "classification", device="cpu", heads=heads, reference=reference)
    traced = Scorer.open(path, "classification", device="cpu", traced=True)
    later = rng.normal(size=(500, 6))
    found, about = next(iter(scorer.score(fed(later)))), next(iter(traced.traces(fed(later))))
    low, high = reference.limits["dsa:reference"]
    for i, (activation, number) in enumerate(zip(about.activations, about.predicted, strict=True)):
        if number not in reference.classes:
            assert found.variables["dsa"][i] == 1
            continue
        raw = surprise.dsa(reference.traces, reference.predicted, activation, number)
        assert found.variables["dsa"][i] == pytest.approx(
            np.clip((raw - low) / (high - low), 1e-6, 1), rel=1e-5, abs=1e-6
        )
    assert np.isfinite(found.variables["lsa"]).all()


def test_sorted_and_routed_agree(mlp, fed, fitted, later) -> None:
    path = mlp()
    reference = fitted(path, later)
    about = next(iter(Scorer.open(path, "classification", device="cpu", traced=True).traces(fed(later))))
    for name, head in (("dsa", DistanceSurprise()), ("lsa", LikelihoodSurprise())):
        scorer = Scorer.open(path, "classification", device="cpu", heads={name: head}, reference=reference)
        routed = next(iter(scorer.score(fed(later)))).variables[name]
        beside = head.function(reference)(about.activations, about.predicted)
        assert routed == pytest.approx(np.maximum(beside, 1e-6), abs=1e-6)


def test_a_head_may_be_a_function(mlp, fed, later, tmp_path) -> None:
    path = mlp()
    scorer = Scorer.open(path, "classification", device="cpu", heads={"norm": Norm()})
    traced = next(iter(Scorer.open(path, "classification", device="cpu", traced=True).traces(fed(later))))
    found = next(iter(scorer.score(fed(later))))
    assert found.variables["norm"] == pytest.approx(np.linalg.norm(traced.activations, axis=1), rel=1e-5)
    with pytest.raises(ModelError, match="cannot be part of the graph, having no ONNX nodes"):
        write_monitor_graph(path, tmp_path / "out.onnx", "classification", {"norm": Norm()})


class Nothing(Head):
    """A head without nodes or function."""


def test_a_head_that_gives_nothing(mlp) -> None:
    with pytest.raises(ModelError, match="neither ONNX nodes"):
        Scorer.open(mlp(), "classification", heads={"nothing": Nothing()})


def test_every_head_keeps_the_contract() -> None:
    for name in plugins.names("head"):
        given = {"autoencoder": {"model": "other.onnx"}, "column": {"column": "risk"}}.get(name, {})
        assert isinstance(plugins.make("head", name, given), Head)


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_an_autoencoder_from_elsewhere(mlp, compiled, outputs, later, tmp_path, opset) -> None:
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["t0"]), onnx.helper.make_node("Tanh", ["t0"], ["scores"])]
    made = onnx.helper.make_graph(
        nodes,
        "autoencoder",
        [onnx.helper.make_tensor_value_info("x", 1, ["n", 6])],
        [onnx.helper.make_tensor_value_info("scores", 1, ["n", 6])],
        [onnx.numpy_helper.from_array(np.eye(6, dtype=np.float32), "w")],
    )
    other = tmp_path / "other.onnx"
    opsets = [onnx.helper.make_opsetid("", opset)]
    onnx.save(onnx.helper.make_model(made, ir_version=10, opset_imports=opsets), str(other))
    found = outputs(compiled(mlp(), {"rebuilt": NamedAutoencoder(str(other))}), later)
    expected = ((later - np.tanh(later)) ** 2).mean(axis=1)
    assert found["rebuilt"] == pytest.approx(np.maximum(expected, 1e-6), rel=1e-5)


def test_an_autoencoder_of_the_registry_is_fetched(tmp_path) -> None:
    head = NamedAutoencoder("models:/rebuild@champion").bind(lambda uri: tmp_path / uri.rpartition("/")[2])
    assert head.model == str(tmp_path / "rebuild@champion")


def test_an_empty_stream(mlp, fed) -> None:
    assert list(Scorer.open(mlp(), "classification", device="cpu", heads=FREE).score(fed(np.empty((0, 6))))) == []


def test_activations_that_are_no_numbers_are_the_most_suspicious(mlp, fed, fitted, later) -> None:
    path = mlp(then="Softmax")
    heads = {"lsa": LikelihoodSurprise(), "dsa": DistanceSurprise()}
    scorer = Scorer.open(path, "classification", device="cpu", heads=heads, reference=fitted(path, later))
    strange = np.full((2, 6), 1e38)
    for part in scorer.score(fed(strange)):
        assert all((part.variables[name] > 0).all() for name in heads)
