from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from opmon.errors import InputError, ModelError
from opmon.scoring.inputs.columns import REFUSED
from opmon.scoring.outputs.variables import FLOOR, softmax, variables_of
from opmon.scoring.scorer import Scorer
from opmon.types import Batch
from opmon.values import canonical_classes

MODELS = [
    LogisticRegression(max_iter=50),
    RandomForestClassifier(5, random_state=0),
    GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0),
    MLPClassifier((8,), max_iter=5, random_state=0),
    GaussianNB(),
    KNeighborsClassifier(3),
    make_pipeline(StandardScaler(), LogisticRegression(max_iter=50)),
]
NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def batch_of(rows: np.ndarray, first_row: int = 0) -> Batch:
    rows = np.ascontiguousarray(rows)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    return Batch(2, first_row, pa.record_batch({"x": column}))


def one(scorer: Scorer, rows: list[list[float | None] | None]):
    (scored,) = scorer.score([Batch(0, 0, pa.record_batch({"x": pa.array(rows, pa.list_(pa.float32()))}))])
    return scored


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zipmap", [False, True], ids=["matrix", "zipmap"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_scorer_agrees_with_scikit_learn(tmp_path, digits, model, zipmap) -> None:
    images, targets = digits
    for truth in (targets, NAMES[targets], (targets > 4).astype(int)):
        model.fit(images[:600], truth[:600])
        path = tmp_path / "model.onnx"
        path.write_bytes(to_onnx(model, images[:1], options={"zipmap": zipmap}).SerializeToString())
        (scored,) = Scorer.open(path, "classification", device="cpu").score([batch_of(images[600:900])])
        assert (scored.predictions == canonical_classes(model.predict(images[600:900]))).mean() > 0.99
        probabilities = model.predict_proba(images[600:900])
        for name, values in variables_of(probabilities).items():
            np.testing.assert_allclose(scored.variables[name], values, atol=2e-3, err_msg=name)


def test_scorer_reads_logits_from_the_last_operator(opened) -> None:
    scored = one(opened("Identity"), [[3, 1, 2, 0], [0, 5, 0, 0]])
    assert scored.predictions.tolist() == ["0", "1"]
    expected = 1 - softmax(np.array([[3.0, 1, 2], [0, 5, 0]])).max(axis=1)
    np.testing.assert_allclose(scored.variables["confidence"], expected, rtol=1e-5)


def test_scorer_of_softmax_and_log_softmax_is_the_same_as_of_logits(opened) -> None:
    rows = [[3.0, 1, 2, 0], [0, 5, 0, 0]]
    logits = one(opened("Identity"), rows).variables
    for operator in ("Softmax", "LogSoftmax"):
        for name, values in one(opened(operator), rows).variables.items():
            np.testing.assert_allclose(values, logits[name], rtol=1e-4, atol=1e-6)


def test_scorer_of_one_neuron(opened) -> None:
    for scorer in (opened("Sigmoid", width=1), opened("Identity", width=1)):
        scored = one(scorer, [[2.0, 0, 0, 0], [-2.0, 0, 0, 0]])
        assert scored.predictions.tolist() == ["1", "0"]
        np.testing.assert_allclose(scored.variables["confidence"], 1 / (1 + np.exp(2)), rtol=1e-5)


def test_scorer_of_one_neuron_takes_two_names(opened) -> None:
    scorer = opened("Sigmoid", width=1, classes=[False, True])
    assert one(scorer, [[2.0, 0, 0, 0]]).predictions.tolist() == ["true"]
    with pytest.raises(ModelError, match="there are 3 classes"):
        opened("Sigmoid", width=1, classes=["a", "b", "c"])


def test_scorer_scores_can_be_overridden(opened) -> None:
    assert one(opened("Relu", scores="logits"), [[9, 0, 0, 0]]).variables["confidence"][0] < 0.01
    with pytest.raises(ModelError, match=r"last operator \(Relu\).*set scores"):
        opened("Relu")
    with pytest.raises(InputError, match="auto, probabilities, logits"):
        opened("Relu", scores="logit")


def test_scorer_probabilities_that_are_none_are_an_error(opened) -> None:
    with pytest.raises(ModelError, match=r"should give probabilities.*scores: logits"):
        one(opened("Identity", scores="probabilities"), [[9, 1, 0, 0]] * 20)


def test_scorer_odd_answers_cost_their_inputs_however_few_come_together(opened, fed) -> None:
    scorer, rows = (
        opened("Identity", scores="probabilities"),
        np.array([[0, 1, 0, 0], [9, 1, 0, 0]] + [[1, 0, 0, 0]] * 9),
    )
    for step in (1, 2, 11):
        parts = list(scorer.score(fed(rows, step)))
        assert [row for part in parts for row in part.rejected] == [1]
        assert [name for part in parts for name in part.predictions] == ["1"] + ["0"] * 9


def test_scorer_names_of_classes(opened, dense) -> None:
    rows = [[0, 0, 1, 0]]
    assert one(opened("Softmax"), rows).predictions.tolist() == ["2"]
    assert one(opened("Softmax", classes=[3.0, 5, "cat"]), rows).predictions.tolist() == ["cat"]
    named = Scorer.open(dense("Softmax", metadata={"classes": '["a", "b", "c"]'}), "classification", device="cpu")
    assert named.classes == ("a", "b", "c")
    assert one(named, rows).predictions.tolist() == ["c"]


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (["a", "b"], ModelError, "3 columns, and there are 2 classes"),
        (["a", "b", "a"], InputError, "differ"),
        ([1, 1.0, 2], InputError, "differ"),
    ],
)
def test_scorer_wrong_classes_are_told(opened, classes, error, message) -> None:
    with pytest.raises(error, match=message):
        opened("Softmax", classes=classes)


def test_scorer_given_classes_rename_numbers_and_may_not_contradict_names(tmp_path, digits, linear) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(to_onnx(linear, digits[0][:1], options={"zipmap": False}).SerializeToString())
    scorer = Scorer.open(path, "classification", classes=NAMES, device="cpu")
    (scored,) = scorer.score([batch_of(digits[0][:50])])
    assert scored.predictions.tolist() == NAMES[linear.predict(digits[0][:50])].tolist()
    named = LogisticRegression(max_iter=50).fit(digits[0][:600], NAMES[digits[1][:600]])
    path.write_bytes(to_onnx(named, digits[0][:1], options={"zipmap": False}).SerializeToString())
    scorer = Scorer.open(path, "classification", classes=NAMES, device="cpu")
    assert scorer.classes == tuple(sorted(NAMES))
    with pytest.raises(ModelError, match="the model's own are"):
        Scorer.open(path, "classification", classes=[f"c{i}" for i in range(10)], device="cpu")


def test_scorer_regression(tmp_path, digits) -> None:
    images, targets = digits
    model = LinearRegression().fit(images[:600], targets[:600])
    path = tmp_path / "model.onnx"
    path.write_bytes(to_onnx(model, images[:1]).SerializeToString())
    (scored,) = Scorer.open(path, "regression", device="cpu").score([batch_of(images[600:700])])
    assert scored.predictions.dtype == np.float64
    assert scored.variables == {}
    np.testing.assert_allclose(scored.predictions, model.predict(images[600:700]), atol=1e-3)


def test_scorer_regression_with_several_numbers_is_an_error(opened) -> None:
    with pytest.raises(ModelError, match="gives 3 numbers for each input"):
        one(opened("Identity", problem="regression"), [[1, 2, 3, 4]])
    with pytest.raises(InputError, match="no classes"):
        opened("Identity", problem="regression", classes=["a"])


def test_scorer_rows_are_numbers_in_the_slice(opened) -> None:
    scored = next(opened("Softmax").score([batch_of(np.eye(4, dtype=np.float32), first_row=100)]))
    assert (scored.slice_index, scored.rows.tolist()) == (2, [100, 101, 102, 103])


@pytest.mark.parametrize("batch_size", [1, 3, 7, 1000])
def test_scorer_batch_size_changes_nothing(opened, batch_size) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    whole = next(opened("Softmax", batch_size=50).score([batch_of(rows)]))
    parts = next(opened("Softmax", batch_size=batch_size).score([batch_of(rows)]))
    assert whole.predictions.tolist() == parts.predictions.tolist()
    np.testing.assert_allclose(whole.variables["entropy"], parts.variables["entropy"], rtol=1e-5)


def test_scorer_of_a_model_with_a_fixed_batch(dense) -> None:
    scorer = Scorer.open(dense("Softmax", batch=4), "classification", device="cpu")
    scored = next(scorer.score([batch_of(np.tile(np.eye(4, dtype=np.float32), (2, 1))[:6])]))
    assert scored.predictions.tolist() == ["0", "1", "2", "0", "0", "1"]


def test_scorer_sets_rows_aside_that_cannot_be_scored(opened) -> None:
    rows = [[1.0, 0, 0, 0], None, [1.0, 0, 0], [None, 0, 0, 0], [float("nan"), 0, 0, 0], [0, 0, 1.0, 0]]
    scored = one(opened("Softmax"), rows)
    assert scored.rows.tolist() == [0, 5]
    assert scored.predictions.tolist() == ["0", "2"]
    assert scored.rejected[1] == "column 'x' is empty"
    assert "3 values, not 4" in scored.rejected[2]
    assert scored.rejected[3] == scored.rejected[4] == "column 'x' is empty, and the model gives no answer without it"
    refused = one(opened("Softmax", missing=REFUSED), rows)
    assert refused.rows.tolist() == [0, 5]
    assert refused.rejected[3] == refused.rejected[4] == "column 'x' has an empty value in its list"


def test_scorer_sets_aside_answers_that_are_not_numbers(opened) -> None:
    scored = one(opened("Log", "Identity", scores="logits"), [[1.0, 1, 1, 1], [-1.0, 1, 1, 1]])
    assert scored.rows.tolist() == [0]
    assert scored.rejected == {1: "the model's answer is not a number, or no probabilities"}


def test_scorer_of_a_batch_without_one_good_row(opened) -> None:
    scored = one(opened("Softmax"), [None, None])
    assert (len(scored.rows), len(scored.predictions), len(scored.rejected)) == (0, 0, 2)


def test_scorer_of_no_batches_and_of_an_empty_one(opened) -> None:
    assert list(opened("Softmax").score([])) == []
    assert list(opened("Softmax").score([batch_of(np.empty((0, 4), np.float32))])) == []


def test_scorer_of_half_floats(dense) -> None:
    path = dense("Softmax", kind=TensorProto.FLOAT16)
    scored = one(Scorer.open(path, "classification", device="cpu"), [[9, 0, 0, 0], [0, 9, 0, 0]])
    assert scored.predictions.tolist() == ["0", "1"]
    assert (scored.variables["confidence"] >= np.float32(FLOOR)).all()


def test_scorer_chooses_among_outputs(graph) -> None:
    nodes = [helper.make_node("Softmax", ["x"], ["a"]), helper.make_node("Identity", ["x"], ["b"])]
    shape = (TensorProto.FLOAT, ["n", 4])
    path = graph(nodes, [("x", *shape)], [("a", *shape), ("b", *shape)])
    with pytest.raises(ModelError, match=r"several outputs.*a: float.*Set output"):
        Scorer.open(path, "classification", device="cpu")
    assert Scorer.open(path, "classification", output="a", device="cpu").describe()["score"] == "a (probabilities)"
    with pytest.raises(ModelError, match="no output 'c'"):
        Scorer.open(path, "classification", output="c", device="cpu")


def test_scorer_of_a_model_with_labels_alone_is_an_error(graph) -> None:
    node = helper.make_node("ArgMax", ["x"], ["label"], axis=1)
    path = graph([node], [("x", TensorProto.FLOAT, ["n", 4])], [("label", TensorProto.INT64, ["n", 1])])
    with pytest.raises(ModelError, match="no scores, only answers"):
        Scorer.open(path, "classification", device="cpu")


def test_scorer_describes_itself(opened) -> None:
    assert opened("Softmax", classes=["a", "b", "c"]).describe() == {
        "device": "cpu",
        "placement": "2 of 2 operators on cpu",
        "inputs": ["x: float[?, 4]"],
        "outputs": ["y: float[?, 3]"],
        "score": "y (probabilities)",
        "classes": ["a", "b", "c"],
    }
