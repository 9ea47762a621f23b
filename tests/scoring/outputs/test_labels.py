"""Labels are told apart from numbers of columns once, by the graph: what the model answers is what is judged."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from opmon.errors import ModelError
from opmon.scoring.outputs.labels import Labels
from opmon.scoring.outputs.meaning import Outputs
from opmon.scoring.outputs.variables import softmax
from opmon.scoring.scorer import Scorer
from opmon.types import Batch
from opmon.values import canonical_classes

RNG = np.random.default_rng(3)
CENTRES = 2 * RNG.normal(size=(5, 6))
TRUTH = np.arange(400) % 5
ROWS = (CENTRES[TRUTH] + RNG.normal(size=(400, 6))).astype(np.float32)
TREE, PLAIN = DecisionTreeClassifier(max_depth=4, random_state=0), LogisticRegression(max_iter=200)
TWO = [("tree", TREE), ("plain", PLAIN)]
MODELS = {
    "bagging": BaggingClassifier(TREE, n_estimators=3, random_state=0),
    "stacking": StackingClassifier(TWO, PLAIN, cv=2),
    "soft voting": VotingClassifier(TWO, voting="soft", flatten_transform=False),
    "one against the rest": OneVsRestClassifier(PLAIN),
    "neighbours": KNeighborsClassifier(3),
    "support vectors": SVC(),
    "ridge": RidgeClassifier(),
}


@functools.cache
def learned(name: str) -> Any:
    return MODELS[name].fit(ROWS, TRUTH + 1)


ONE_TO_FIVE, WORDS = [1, 2, 3, 4, 5], ["ant", "bee", "cat", "dog", "elk"]


def answers(path: Path, rows: np.ndarray = ROWS, **options: Any) -> Any:
    scorer = Scorer.open(path, "classification", device="cpu", **options)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    (scored,) = scorer.score([Batch(0, 0, pa.record_batch({scorer.session.inputs[0].name: lists}))])
    return scored


@pytest.fixture
def exported(tmp_path: Path):
    def written(model: Any) -> Path:
        path = tmp_path / "model.onnx"
        options = {"zipmap": False, **({"raw_scores": True} if isinstance(model, SVC) else {})}
        path.write_bytes(to_onnx(model, ROWS[:1], options=options).SerializeToString())
        return path

    return written


@pytest.mark.parametrize("classes", [None, ONE_TO_FIVE, WORDS, [0, 1, 2, 3, 4], [2, 3, 4, 5, 6]], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_labels_from_one_on_are_those_of_the_model(exported, name, classes) -> None:
    model = learned(name)
    scores = "logits" if name == "support vectors" else "auto"
    found = answers(exported(model), classes=classes, scores=scores)
    expected = np.array(classes or ONE_TO_FIVE).astype(str)[model.predict(ROWS) - 1]
    assert (found.predictions == expected).mean() > 0.99
    assert found.unlike <= 4


@pytest.mark.parametrize("name", ["bagging", "one against the rest"])
def test_labels_that_are_words(exported, name) -> None:
    model = clone(MODELS[name]).fit(ROWS, np.array(WORDS)[TRUTH])
    assert (answers(exported(model)).predictions == model.predict(ROWS)).all()


def test_scores_alone_have_the_classes_of_the_node_that_gives_them(tmp_path) -> None:
    model = to_onnx(learned("stacking").final_estimator_, ROWS[:1, :5], options={"zipmap": False})
    del model.graph.output[0]
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    outputs = Scorer.open(path, "classification", device="cpu").outputs
    assert (outputs.labels, outputs.classes) == (None, ("0", "1", "2", "3", "4"))


def test_labels_of_one_against_one_are_numbers_of_columns(exported) -> None:
    model = OneVsOneClassifier(PLAIN).fit(ROWS, TRUTH + 1)
    found = answers(exported(model), classes=ONE_TO_FIVE, scores="logits")
    assert (found.predictions == canonical_classes(model.predict(ROWS))).mean() > 0.99


def chosen(graph, *then: Any, kind: int = TensorProto.INT64, shape: Any = ("n",), weights: Any = None) -> Path:
    """A model that gives its inputs as logits, and a label that some nodes make of them."""
    nodes = [helper.make_node("Gemm", ["x", "w"], ["scores"]), *then]
    outputs = [("scores", TensorProto.FLOAT, ["n", 6]), ("label", kind, list(shape))]
    more = {"w": np.eye(6, dtype=np.float32), **(weights or {})}
    return graph(nodes, [("x", TensorProto.FLOAT, ["n", 6])], outputs, more, opset=11)


ARGMAX = helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0)
INNER = helper.make_node("ArgMax", ["scores"], ["at"], axis=1, keepdims=0)
TOP = helper.make_node("TopK", ["scores", "one"], ["best", "label"], axis=1)
LOOKED_UP = helper.make_node("Gather", ["names", "at"], ["label"])
BIGGEST = ROWS.argmax(axis=1)


@pytest.mark.parametrize(
    ("nodes", "options", "weights"),
    [
        ([ARGMAX], {}, {}),
        ([INNER, helper.make_node("Cast", ["at"], ["label"], to=TensorProto.INT32)], {"kind": TensorProto.INT32}, {}),
        ([TOP], {"shape": ("n", 1)}, {"one": np.array([1])}),
    ],
    ids=["argmax", "cast", "topk"],
)
@pytest.mark.parametrize("classes", [range(1, 7), range(5, -1, -1), "abcdef"], ids=str)
def test_numbers_of_columns_are_never_taken_for_names(graph, nodes, options, weights, classes) -> None:
    """Also where 1 is the name of the first column, and 0 of the second."""
    path = chosen(graph, *nodes, weights=weights, **options)
    found = answers(path, classes=list(classes), scores="logits")
    assert found.predictions.tolist() == np.array([str(name) for name in classes])[BIGGEST].tolist()
    assert found.unlike == 0


def test_labels_looked_up_in_a_list_of_names(graph) -> None:
    path = chosen(graph, INNER, LOOKED_UP, weights={"names": np.array([7, 1, 0, 9, 3, 2])})
    scored = answers(path)
    assert scored.predictions.tolist() == np.array(["7", "1", "0", "9", "3", "2"])[BIGGEST].tolist()
    renamed = answers(path, classes=list("abcdef"))
    assert renamed.predictions.tolist() == np.array(list("abcdef"))[BIGGEST].tolist()
    assert Scorer.open(path, "classification", device="cpu").classes == ("7", "1", "0", "9", "3", "2")


@pytest.mark.parametrize("as_tensors", [False, True])
def test_labels_translated_by_an_encoder(tmp_path, as_tensors) -> None:
    keys, names = [0, 1, 2, 3, 4, 5], [*"uvwxyz"]
    told: dict[str, Any] = {"keys_int64s": keys, "values_strings": names}
    if as_tensors:
        texts = helper.make_tensor("t", TensorProto.STRING, [6], [name.encode() for name in names])
        told = {"keys_tensor": numpy_helper.from_array(np.array(keys)), "values_tensor": texts}
    encoder = helper.make_node("LabelEncoder", ["at"], ["label"], domain="ai.onnx.ml", **told)
    nodes = [helper.make_node("Gemm", ["x", "w"], ["scores"]), INNER, encoder]
    made = helper.make_graph(
        nodes,
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 6]),
            helper.make_tensor_value_info("label", TensorProto.STRING, ["n"]),
        ],
        [numpy_helper.from_array(np.eye(6, dtype=np.float32), "w")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 4 if as_tensors else 2)]
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(made, ir_version=8, opset_imports=opsets).SerializeToString())
    assert answers(path).predictions.tolist() == np.array(names)[BIGGEST].tolist()
    assert Scorer.open(path, "classification", device="cpu").classes == tuple(names)


UNTRACED = [INNER, helper.make_node("Add", ["at", "shift"], ["label"])]


def test_labels_that_the_graph_does_not_explain_must_go_with_the_scores(graph) -> None:
    path = chosen(graph, *UNTRACED, weights={"shift": np.array([1])})
    assert answers(path, classes=range(1, 7)).predictions.tolist() == canonical_classes(BIGGEST + 1).tolist()
    with pytest.raises(ModelError, match=r"gives '6', and its labels should be 0 to 5: give classes"):
        answers(path)
    with pytest.raises(ModelError, match=r"is not the class with the greatest score \('scores'\) for \d+ of 400"):
        answers(path, classes=range(6, 0, -1))
    few = answers(path, ROWS[:10], classes=range(6, 0, -1))
    assert few.unlike > 5  # too few to be sure of: said by opmon check


def test_true_and_false_are_labels(graph) -> None:
    nodes = [helper.make_node("Gemm", ["x", "w"], ["s"]), helper.make_node("Sigmoid", ["s"], ["p"])]
    nodes.append(helper.make_node("Greater", ["p", "line"], ["label"]))
    outputs = [("p", TensorProto.FLOAT, ["n", 1]), ("label", TensorProto.BOOL, ["n", 1])]
    weights = {"w": np.eye(6, 1, dtype=np.float32), "line": np.array([0.9], np.float32)}
    path = graph(nodes, [("x", TensorProto.FLOAT, ["n", 6])], outputs, weights)
    found = answers(path, classes=["no", "yes"])
    sure = 1 / (1 + np.exp(-ROWS[:, 0])) > 0.9
    assert found.predictions.tolist() == np.where(sure, "yes", "no").tolist()
    assert found.unlike == (sure != (ROWS[:, 0] > 0)).sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scores", ["auto", "probabilities", "logits"])
@pytest.mark.parametrize("model", [OneVsRestClassifier(PLAIN), MultiOutputClassifier(PLAIN)], ids=["sets", "several"])
def test_several_labels_for_each_input_are_refused(exported, model, scores) -> None:
    model.fit(ROWS, np.stack([TRUTH > 1, TRUTH > 2, TRUTH > 3], axis=1).astype(int))
    with pytest.raises(ModelError, match=r"multi-label.*one of its labels|no scores"):
        answers(exported(model), scores=scores)


def test_several_labels_of_which_the_file_does_not_tell_are_refused() -> None:
    with pytest.raises(ModelError, match=r"shape \[4, 2\].*multi-label"):
        Labels("label", numbers=True).read(np.zeros((4, 2), np.int64), 4, ("a", "b"))


@pytest.mark.parametrize("shape", [["n", 4, 28, 28], ["n", 12, 9], ["n", "a", "b"]], ids=str)
def test_scores_for_each_pixel_or_word_are_refused(graph, shape) -> None:
    node = helper.make_node("Reshape", ["x", "to"], ["y"])
    sizes = [size if isinstance(size, int) else 3 for size in shape[1:]]
    width = int(np.prod(sizes))
    weights = {"to": np.array([-1, *sizes])}
    path = graph([node], [("x", TensorProto.FLOAT, ["n", width])], [("y", TensorProto.FLOAT, shape)], weights)
    with pytest.raises(ModelError, match=r"one score for each class: \[inputs, classes\]"):
        answers(path, np.zeros((5, width), np.float32), scores="logits")


def test_a_yes_or_no_for_each_class_is_explained(opened, fed, graph) -> None:
    with pytest.raises(ModelError, match=r"probability of its own \(Sigmoid\).*scores: independent.*multi-label"):
        opened("Sigmoid")
    with pytest.raises(ModelError, match=r"scores: independent \(a yes or no for each class\)"):
        list(opened("Sigmoid", scores="probabilities").score(fed(np.ones((20, 4)))))
    logits = np.array([[3.0, 1, 2, 0], [-9, -5, -7, 0]])
    (scored,) = opened("Sigmoid", scores="independent").score(fed(logits))
    assert scored.predictions.tolist() == ["0", "1"]
    np.testing.assert_allclose(scored.variables["confidence"], 1 - softmax(logits[:, :3]).max(axis=1), rtol=1e-3)


def test_a_yes_or_no_for_each_class_is_the_same_in_the_graph(mlp, fed) -> None:
    from opmon.scoring.heads.confidence import Confidence

    path = mlp(then="Sigmoid")
    rows = RNG.normal(size=(50, 6))
    scorer = Scorer.open(path, "classification", scores="independent", device="cpu", heads={"inside": Confidence()})
    (scored,) = scorer.score(fed(rows))
    np.testing.assert_allclose(scored.variables["inside"], scored.variables["confidence"], rtol=1e-4)


def test_a_label_beside_a_yes_or_no_for_each_class_says_that_one_is_right(graph) -> None:
    nodes = [helper.make_node("Sigmoid", ["x"], ["scores"]), ARGMAX]
    outputs = [("scores", TensorProto.FLOAT, ["n", 6]), ("label", TensorProto.INT64, ["n"])]
    path = graph(nodes, [("x", TensorProto.FLOAT, ["n", 6])], outputs)
    scorer = Scorer.open(path, "classification", device="cpu")
    assert scorer.describe()["score"] == "scores (independent)"


def test_outputs_say_what_the_file_calls_its_classes(exported) -> None:
    outputs: Outputs = Scorer.open(exported(learned("bagging")), "classification", classes=WORDS, device="cpu").outputs
    assert (outputs.own_classes, outputs.classes) == (tuple("12345"), tuple(WORDS))
