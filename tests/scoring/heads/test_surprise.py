"""DSA and LSA in the graph against SADL's definition, and where that definition breaks down."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from scipy.stats import gaussian_kde

from opmon.errors import InputError, ModelError
from opmon.scoring.heads.combined import Combined
from opmon.scoring.heads.confidence import Confidence
from opmon.scoring.heads.dsa import DistanceSurprise
from opmon.scoring.heads.lsa import LikelihoodSurprise
from opmon.scoring.reference.densities import kept_neurons
from opmon.scoring.reference.distances import crowd, distinct
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.reference.fitting import with_limits
from opmon.scoring.session import open_session
from opmon.testing import surprise

HEADS = {
    "dsa": DistanceSurprise(),
    "dsa_input": DistanceSurprise("input"),
    "lsa": LikelihoodSurprise(),
    "combined": Combined(),
}


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(800, 6)).astype(np.float32)


@pytest.fixture
def later() -> np.ndarray:
    """Production's inputs: like the training's, and some far out."""
    rng = np.random.default_rng(2)
    return (rng.normal(size=(200, 6)) * np.where(rng.random(200) < 0.2, 5, 1)[:, None]).astype(np.float32)


def reference_of(traces, predicted, path, columns=4, distances=None) -> Reference:
    """A reference made by hand."""
    from opmon.scoring.reference.distances import distances_to_others
    from opmon.scoring.reference.fitted import model_hash

    traces, predicted = np.asarray(traces, np.float32), np.asarray(predicted, np.int64)
    distances = distances_to_others(traces, predicted) if columns else np.full(len(traces), np.inf)
    problem = "classification" if columns else "regression"
    plain = Reference(model_hash(path), "hidden", problem, columns, traces, predicted, distances)
    return with_limits(plain, np.random.default_rng(0))


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_both_are_what_sadl_says(mlp, fitted, compiled, outputs, rows, later, offset) -> None:
    """Also of training inputs themselves, whose DSA is 0, and with activations around 1000."""
    path = mlp(offset=offset)
    reference = fitted(path, rows)
    found = outputs(compiled(path, HEADS, reference), np.concatenate([later, rows[:100]]))
    hidden = open_session(_with_hidden(path), "cpu").run(["hidden"], {"x": np.concatenate([later, rows[:100]])})[0]
    predicted = found["scores"].argmax(axis=1)
    kept, traces = kept_neurons(reference), reference.traces
    for i, (activation, number) in enumerate(zip(hidden, predicted, strict=True)):
        about = (traces, reference.predicted, activation, number)
        for name, denominator in (("dsa_raw", "reference"), ("dsa_input_raw", "input")):
            assert found[name][i] == pytest.approx(surprise.dsa(*about, denominator), rel=1e-5, abs=0)
        assert found["lsa_raw"][i] == pytest.approx(surprise.lsa(*about, kept), abs=2e-3)


def test_many_traces_are_searched_in_blocks(mlp, compiled, outputs, later, tmp_path) -> None:
    import onnx

    rng = np.random.default_rng(8)
    path = mlp()
    reference = reference_of(rng.normal(size=(8003, 5)), rng.integers(0, 4, 8003), path)
    session = compiled(path, {"dsa": DistanceSurprise()}, reference)
    assert any(node.op_type == "GatherND" for node in onnx.load(str(tmp_path / "mlp-monitor.onnx")).graph.node)
    found = outputs(session, later)
    hidden = open_session(_with_hidden(path), "cpu").run(["hidden"], {"x": later})[0]
    for i, number in enumerate(found["scores"].argmax(axis=1)):
        expected = surprise.dsa(reference.traces, reference.predicted, hidden[i], number)
        assert found["dsa_raw"][i] == pytest.approx(expected, rel=1e-5)
    for i in range(5):  # most classes have no input then
        assert outputs(session, later[i : i + 1])["dsa_raw"] == pytest.approx(found["dsa_raw"][i : i + 1], rel=1e-6)


def test_lsa_is_scipys_density(mlp, fitted, compiled, outputs, rows, later) -> None:
    path = mlp()
    reference = fitted(path, rows)
    found = outputs(compiled(path, {"lsa": LikelihoodSurprise()}, reference), later)
    hidden = open_session(_with_hidden(path), "cpu").run(["hidden"], {"x": later})[0].astype(np.float64)
    predicted = found["scores"].argmax(axis=1)
    for number in range(4):
        density = gaussian_kde(reference.traces[reference.predicted == number].T.astype(np.float64))
        assert found["lsa_raw"][predicted == number] == pytest.approx(
            -density.logpdf(hidden[predicted == number].T), abs=2e-3
        )


def test_a_regression_model_has_one_density(mlp, fitted, compiled, outputs, rows, later) -> None:
    path = mlp(classes=1)
    reference = fitted(path, rows, problem="regression")
    found = outputs(compiled(path, {"lsa": LikelihoodSurprise()}, reference, "regression"), later)
    hidden = open_session(_with_hidden(path), "cpu").run(["hidden"], {"x": later})[0]
    expected = -gaussian_kde(reference.traces.T.astype(np.float64)).logpdf(hidden.T.astype(np.float64))
    assert found["lsa_raw"] == pytest.approx(expected, abs=2e-3)
    assert (found["lsa"] > 0).all()
    assert np.argmax(found["lsa"]) == np.argmax(expected)
    with pytest.raises(ModelError, match="regression model has none"):
        compiled(path, {"dsa": DistanceSurprise()}, reference, "regression")


@pytest.mark.parametrize("size", [1, 2, 77])
def test_the_models_own_answers_stay_bit_for_bit(mlp, fitted, compiled, outputs, rows, later, size) -> None:
    path = mlp(then="Softmax")
    found = outputs(compiled(path, {**HEADS, "confidence": Confidence()}, fitted(path, rows)), later[:size])
    plain = open_session(path, "cpu", threads=1).run(["answers"], {"x": later[:size]})[0]
    assert (found["answers"] == plain).all()
    assert all(len(values) == size for values in found.values())


def test_the_variables_lie_between_their_floor_and_one(mlp, fitted, compiled, outputs, rows, later) -> None:
    path = mlp()
    found = outputs(compiled(path, HEADS, fitted(path, rows)), later)
    for name in HEADS:
        assert (found[name] >= 1e-6).all()
        assert (found[name] <= 1).all()
    trust = 1 - np.exp(found["scores"] - found["scores"].max(1, keepdims=True)).sum(1) ** -1
    assert found["combined"] == pytest.approx(1 - (1 - trust) * (1 - found["dsa"]), abs=1e-5)


def test_activations_of_float16_models(mlp, fitted, compiled, outputs, rows, later) -> None:
    path = mlp(kind=TensorProto.FLOAT16)
    reference = fitted(path, rows)
    found = outputs(compiled(path, HEADS, reference), later.astype(np.float16))
    assert all(np.isfinite(found[name]).all() and found[name].dtype == np.float32 for name in HEADS)
    assert (found["scores"] == open_session(path, "cpu").run(["scores"], {"x": later.astype(np.float16)})[0]).all()


@pytest.mark.parametrize("opset", [11, 12, 13, 17, 18, 21])
def test_the_same_in_every_opset(mlp, fitted, compiled, outputs, rows, later, opset) -> None:
    path, usual = mlp(opset=opset, name="now"), mlp(name="usual")
    found = outputs(compiled(path, HEADS, fitted(path, rows)), later)
    expected = outputs(compiled(usual, HEADS, fitted(usual, rows)), later)
    for name in HEADS:
        assert found[name] == pytest.approx(expected[name], abs=1e-5)


def test_a_fixed_batch_of_one(mlp, fitted, compiled, outputs, rows, later) -> None:
    path = mlp(batch=1)
    found = outputs(compiled(path, HEADS, fitted(path, rows[:200])), later[:1])
    assert all(found[name].shape == (1,) for name in HEADS)


def test_one_output_neuron(mlp, fitted, compiled, outputs, rows, later) -> None:
    path = mlp(classes=1, then="Sigmoid")
    reference = fitted(path, rows)
    assert reference.classes == (0, 1)
    found = outputs(compiled(path, {**HEADS, "confidence": Confidence()}, reference), later)
    assert found["confidence"] == pytest.approx(1 - np.maximum(found["answers"], 1 - found["answers"])[:, 0], abs=1e-6)
    assert np.isfinite(found["dsa"]).all()


def test_classes_of_none_one_and_two_traces(mlp, compiled, outputs, later) -> None:
    rng = np.random.default_rng(3)
    traces = np.concatenate([rng.normal(size=(1, 5)), rng.normal(size=(2, 5)), rng.normal(size=(50, 5))])
    path = mlp()
    reference = reference_of(traces, [1] + [2, 2] + [3] * 50, path)
    found = outputs(compiled(path, HEADS, reference), np.repeat(later, 5, axis=0))
    predicted = found["scores"].argmax(axis=1)
    assert {0, 1, 2, 3} <= set(predicted.tolist())
    for name in HEADS:
        assert np.isfinite(found[name]).all()
        assert (found[name][predicted == 0] == 1).all()  # training never predicted it
    hidden = open_session(_with_hidden(path), "cpu").run(["hidden"], {"x": np.repeat(later, 5, axis=0)})[0]
    for i in np.flatnonzero(predicted > 0):
        expected = surprise.dsa(reference.traces, reference.predicted, hidden[i], predicted[i])
        assert found["dsa_raw"][i] == pytest.approx(expected, rel=1e-5)


def test_traces_that_two_classes_share(mlp, compiled, outputs, later) -> None:
    """``dist_b`` is zero there: the quotient is large, not infinite and not NaN."""
    rng = np.random.default_rng(4)
    some = rng.normal(size=(40, 5))
    path = mlp()
    reference = reference_of(
        np.concatenate([some, some, rng.normal(size=(40, 5))]), [0] * 40 + [1] * 40 + [2] * 40, path
    )
    assert (reference.distances[:80] == 0).all()
    found = outputs(compiled(path, HEADS, reference), later)
    assert all(np.isfinite(found[name]).all() for name in HEADS)
    assert np.isfinite(found["dsa_raw"]).all()


def test_singular_covariances_and_dead_neurons_that_fire_in_production(mlp, compiled, outputs, later) -> None:
    rng = np.random.default_rng(5)
    traces = rng.normal(size=(300, 5))
    traces[:, 3] = traces[:, 0] * 2  # singular
    traces[:, 4] = 0.25  # dead
    path = mlp()
    reference = reference_of(traces, np.arange(300) % 4, path)
    assert not kept_neurons(reference)[4]
    found = outputs(compiled(path, HEADS, reference), later)
    assert all(np.isfinite(found[name]).all() for name in HEADS)
    hidden = open_session(_with_hidden(path), "cpu").run(["hidden"], {"x": later})[0]
    for i, number in enumerate(found["scores"].argmax(axis=1)):
        expected = surprise.dsa(reference.traces, reference.predicted, hidden[i], number)
        assert found["dsa_raw"][i] == pytest.approx(expected, rel=1e-5)


def test_identical_traces(mlp, compiled, outputs, later) -> None:
    path = mlp()
    reference = reference_of(np.ones((40, 5)), np.arange(40) % 4, path)
    found = outputs(compiled(path, HEADS, reference), later)
    assert all(np.isfinite(found[name]).all() for name in HEADS)


def test_far_out_is_finite(mlp, fitted, compiled, outputs, rows) -> None:
    path = mlp(then=None)
    reference = fitted(path, rows)
    far = reference_of(reference.traces * 1e-6, reference.predicted, path)
    found = outputs(compiled(path, HEADS, far), np.full((3, 6), 1e30, np.float32))
    assert all(np.isfinite(found[name]).all() for name in (*HEADS, "lsa_raw", "dsa_raw"))


def test_crowds_of_traces_nearly_the_same(mlp, fitted, compiled, outputs) -> None:
    """As of a camera that does not move: differences far below what float32 products can tell, and equal traces."""
    rng = np.random.default_rng(6)
    rows = np.repeat(rng.normal(size=(30, 6)), 12, axis=0)
    rows = np.concatenate([rows + rng.normal(size=rows.shape) * 1e-6] * 2).astype(np.float32)
    path = mlp()
    reference = fitted(path, rows)
    crowded = reference.traces[reference.predicted == reference.predicted[0]]
    assert len(distinct(crowded)) <= len(crowded) / 2
    assert 10 <= crowd(crowded[distinct(crowded)]) <= 24
    assert (outputs(compiled(path, {"dsa": DistanceSurprise()}, reference), rows)["dsa_raw"] == 0).all()


def test_one_predicted_class_has_no_dsa(mlp, compiled) -> None:
    path = mlp()
    reference = reference_of(np.random.default_rng(0).normal(size=(20, 5)), np.zeros(20), path)
    with pytest.raises(ModelError, match="at least two predicted classes"):
        compiled(path, {"dsa": DistanceSurprise()}, reference)


def test_a_reference_of_another_model_is_refused(mlp, fitted, compiled, rows) -> None:
    reference = fitted(mlp(), rows)
    with pytest.raises(ModelError, match="fitted on another model"):
        compiled(mlp(seed=9, name="other"), {"lsa": LikelihoodSurprise()}, reference)


def test_without_a_reference_the_error_says_how_to_get_one(mlp, compiled) -> None:
    with pytest.raises(ModelError, match="opmon reference"):
        compiled(mlp(), {"lsa": LikelihoodSurprise()})


def test_an_unknown_denominator() -> None:
    with pytest.raises(InputError, match="reference or input"):
        DistanceSurprise("target")


def _with_hidden(path) -> bytes:
    """The model with its hidden layer as another output."""
    import onnx

    model = onnx.load(str(path))
    kind = model.graph.input[0].type.tensor_type.elem_type
    model.graph.output.append(onnx.helper.make_tensor_value_info("hidden", kind, ["n", 5]))
    return model.SerializeToString()
