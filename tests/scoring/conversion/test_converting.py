"""A converted model answers as the original does, on every input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import spearmanr
from sklearn.base import is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from xgboost import XGBClassifier

from opmon.errors import ModelError
from opmon.scoring.conversion.converting import convert
from opmon.scoring.conversion.original import answers_of
from opmon.scoring.inputs.columns import Missing
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import open_session
from opmon.types import Batch, Signature
from opmon.values import canonical_classes

RNG = np.random.default_rng(8)
CENTRES = RNG.normal(size=(4, 5))
TRUTH = np.arange(1200) % 4
ROWS = CENTRES[TRUTH] + RNG.normal(size=(1200, 5))
LATE = np.column_stack([ROWS[:, :4], 1.7e9 + 3000 * RNG.normal(size=1200) + 2000 * TRUTH])
"""The last column is a time in seconds: float32 knows one of 128."""
GAPS = np.where(RNG.random(ROWS.shape) < 0.1, np.nan, ROWS)
FIT, ASK = slice(0, 400), slice(400, None)
NAMES = np.array(["ant", "bee", "cat", "dog"])
TREE, PLAIN = DecisionTreeClassifier(max_depth=4, random_state=0), LogisticRegression(max_iter=200)
TWO = [("tree", TREE), ("bayes", GaussianNB())]
HIST = {"max_iter": 5, "max_leaf_nodes": 9}
FEW = HistGradientBoostingClassifier(**HIST)
MODELS: dict[str, Any] = {
    "bagging": BaggingClassifier(TREE, n_estimators=3, random_state=0),
    "stacking": StackingClassifier(TWO, PLAIN, cv=2),
    "soft voting": VotingClassifier(TWO, voting="soft"),
    "hard voting": VotingClassifier([*TWO, ("plain", PLAIN)], voting="hard"),
    "one against the rest": OneVsRestClassifier(PLAIN),
    "one against one": OneVsOneClassifier(PLAIN),
    "forest": RandomForestClassifier(10, random_state=0),
    "extra trees": ExtraTreesClassifier(10, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0),
    "histograms": HistGradientBoostingClassifier(**HIST),
    "adaboost": AdaBoostClassifier(TREE, n_estimators=3, random_state=0),
    "support vectors": SVC(),
    "linear support vectors": make_pipeline(StandardScaler(), LinearSVC()),
    "ridge": RidgeClassifier(),
    "quadratic": QuadraticDiscriminantAnalysis(),
    "search": GridSearchCV(PLAIN, {"C": [1, 2]}, cv=2),
}


def lists(rows: np.ndarray) -> pa.RecordBatch:
    rows = np.ascontiguousarray(rows)
    return pa.record_batch({"rows": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])})


@pytest.fixture
def opened(tmp_path: Path):
    def made(model: Any, signature: Signature | None = None, **options: Any) -> Scorer:
        path = tmp_path / "model.onnx"
        path.write_bytes(convert(model, signature))
        problem: Any = "classification" if is_classifier(model) else "regression"
        return Scorer.open(path, problem, device="cpu", **options)

    return made


def share(scorer: Scorer, model: Any, rows: pa.RecordBatch, given: Any) -> float:
    """The share of equal answers."""
    (scored,) = scorer.score([Batch(0, 0, rows)])
    assert len(scored.rows) == rows.num_rows, scored.rejected
    return float((scored.predictions == canonical_classes(model.predict(given))).mean())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("labels", ["numbers", "names", "two"])
@pytest.mark.parametrize("name", MODELS)
def test_a_converted_model_answers_as_the_original(opened, name, labels) -> None:
    truth = {"numbers": TRUTH + 1, "names": NAMES[TRUTH], "two": 1 + (TRUTH > 1)}[labels]
    model = MODELS[name].fit(ROWS[FIT], truth[FIT])
    scorer = opened(model)
    assert share(scorer, model, lists(ROWS[ASK]), ROWS[ASK]) == 1
    assert scorer.classes == tuple(canonical_classes(np.unique(truth)))


VECTORS: dict[str, Any] = {
    "support vectors": SVC(),
    "a share of support vectors": NuSVC(),
    "scaled support vectors": make_pipeline(StandardScaler(), SVC(kernel="poly")),
    "calibrated support vectors": CalibratedClassifierCV(SVC(), cv=2),
}
SURE = {name: model for name, model in {**MODELS, **VECTORS}.items() if name != "hard voting"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SURE)
def test_of_two_classes_the_second_has_the_score_of_the_second(opened, name) -> None:
    model = SURE[name].fit(ROWS[FIT], np.where(TRUTH > 1, "yes", "no")[FIT])
    scorer = opened(model).keeping_scores()
    (scored,) = scorer.score([Batch(0, 0, lists(ROWS[ASK]))])
    by_function = hasattr(model, "decision_function")
    own = model.decision_function(ROWS[ASK]) if by_function else model.predict_proba(ROWS[ASK])[:, 1]
    assert spearmanr(scored.scores[:, 1], own).statistic > 0.99
    assert (scored.classes, scored.unlike) == (("no", "yes"), 0)
    (alone,) = scorer.score([Batch(0, 0, lists(ROWS[ASK][:1]))])
    np.testing.assert_allclose(alone.scores[0], scored.scores[0], atol=1e-6)


@pytest.mark.parametrize("given", ["with the label", "alone"])
def test_the_graph_has_the_two_classes_of_support_vectors_in_their_order(tmp_path, given) -> None:
    model = VECTORS["scaled support vectors"].fit(ROWS[FIT], np.where(TRUTH > 1, "yes", "no")[FIT])
    graph = onnx.load_from_string(convert(model))
    if given == "alone":
        del graph.graph.output[0]
    onnx.save(graph, tmp_path / "model.onnx")
    scorer = Scorer.open(tmp_path / "model.onnx", "classification", device="cpu", layer="variable", traced=True)
    (traced,) = scorer.traces([Batch(0, 0, lists(ROWS[ASK]))])
    assert (traced.predictions == model.predict(ROWS[ASK])).all()
    assert (np.array(["no", "yes"])[traced.predicted] == traced.predictions).all()


LARGE: dict[str, Any] = {
    "scaled": make_pipeline(StandardScaler(), PLAIN),
    "scaled forest": make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)),
    "forest": MODELS["forest"],
    "histograms": MODELS["histograms"],
    "stacking": make_pipeline(StandardScaler(), MODELS["stacking"]),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_numbers_keep_their_digits(opened, name) -> None:
    model = LARGE[name].fit(LATE[FIT], TRUTH[FIT])
    assert share(opened(model), model, lists(LATE[ASK]), LATE[ASK]) == 1


def test_a_model_that_was_logged_to_take_float32_takes_float32(opened) -> None:
    signature = Signature(tensors=((None, "float32", (-1, 5)),))
    assert opened(MODELS["ridge"].fit(ROWS, TRUTH), signature).session.inputs[0].kind == "float"


@pytest.mark.parametrize("signature", [None, Signature(tuple((name, "double") for name in "abcde"))], ids=str)
def test_missing_numbers_go_where_the_trees_send_them(opened, signature) -> None:
    model = HistGradientBoostingClassifier(**HIST).fit(GAPS[FIT], TRUTH[FIT])
    assert share(opened(model, signature), model, lists(GAPS[ASK]), GAPS[ASK]) == 1


SPLITS: dict[str, Any] = {
    "tree": DecisionTreeClassifier(random_state=0),
    "number of a tree": DecisionTreeRegressor(random_state=0),
    "random tree": ExtraTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(10, random_state=0),
    "number of a forest": RandomForestRegressor(10, random_state=0),
    "extra trees": ExtraTreesClassifier(10, random_state=0),
    "number of extra trees": ExtraTreesRegressor(10, random_state=0),
    "bagging": BaggingClassifier(DecisionTreeClassifier(random_state=0), 5, random_state=0),
    "number of bagging": BaggingRegressor(DecisionTreeRegressor(random_state=0), 5, random_state=0),
    "search": GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [3, 9]}, cv=2),
    "stacking": StackingClassifier([("tree", TREE), ("extra", ExtraTreeClassifier(random_state=0))], TREE, cv=2),
    "voting": VotingClassifier([("tree", TREE), ("extra", ExtraTreeClassifier(random_state=0))], voting="soft"),
    "isolation": IsolationForest(n_estimators=10, random_state=0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seen", [GAPS, ROWS], ids=["with gaps", "without"])
@pytest.mark.parametrize("name", SPLITS)
def test_missing_numbers_go_where_each_tree_sends_them(name, seen) -> None:
    model = SPLITS[name].fit(seen[FIT], CENTRES[TRUTH[FIT], 0] if is_regressor(SPLITS[name]) else TRUTH[FIT])
    assert np.abs(answered(model, GAPS[ASK])[:, 0] - model.predict(GAPS[ASK])).max() < 1e-5


def test_missing_numbers_go_where_the_trees_of_several_labels_send_them() -> None:
    several = np.stack([TRUTH > 1, TRUTH % 2], axis=1).astype(int)
    for model in (ExtraTreesClassifier(10, random_state=0), RandomForestClassifier(10, max_depth=1, random_state=0)):
        model.fit(GAPS[FIT], several[FIT])
        assert (answered(model, GAPS[ASK]) == model.predict(GAPS[ASK])).all()


def answered(model: Any, rows: np.ndarray, signature: Signature | None = None) -> np.ndarray:
    """The first output of the converted model, a row for each of ``rows``."""
    session = open_session(convert(model, signature), "cpu", 1)
    given = rows.astype({"double": np.float64, "float": np.float32}[session.inputs[0].kind])
    (found,) = session.run([session.outputs[0].name], {"X": given})
    return found.reshape(len(rows), -1)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize("classes", [2, 4])
def test_even_votes_are_settled_alike_in_batches_of_any_size(opened, kind, classes) -> None:
    model = kind(10, random_state=0).fit(ROWS[FIT], TRUTH[FIT] % classes)
    probabilities = np.sort(model.predict_proba(ROWS[ASK]), axis=1)
    assert (probabilities[:, -1] == probabilities[:, -2]).sum() > 5  # there are some
    for size in (1, 7, 800):
        assert share(opened(model, batch_size=size), model, lists(ROWS[ASK]), ROWS[ASK]) == 1


REGRESSIONS: list[Any] = [
    RandomForestRegressor(5, random_state=0),
    HistGradientBoostingRegressor(max_iter=5),
    make_pipeline(StandardScaler(), Ridge()),
    IsolationForest(n_estimators=5, random_state=0),
]


@pytest.mark.parametrize("model", REGRESSIONS, ids=lambda model: type(model).__name__)
def test_a_converted_regression_gives_the_same_numbers(tmp_path, model) -> None:
    model.fit(LATE[FIT], ROWS[FIT, 0])
    session = open_session(convert(model), "cpu", 1)
    given = LATE[ASK].astype({"double": np.float64, "float": np.float32}[session.inputs[0].kind])
    (found,) = session.run([session.outputs[0].name], {"X": given})
    wanted = model.predict(LATE[ASK])
    assert np.abs(found.reshape(-1) - wanted).max() < 1e-5 * wanted.std() + 1e-9


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
@pytest.mark.parametrize("kind", ["double", "float"])
def test_counts_and_sizes_are_what_the_trees_sum_up_to_the_logarithm_of(loss, kind) -> None:
    truth = np.exp(ROWS[:, 0]) + (loss == "gamma")
    model = HistGradientBoostingRegressor(loss=loss, max_iter=5).fit(GAPS[FIT], truth[FIT])
    rows = GAPS[ASK].astype({"double": np.float64, "float": np.float32}[kind])
    found = answered(model, rows, Signature(tensors=((None, kind, (-1, 5)),)))
    np.testing.assert_allclose(found[:, 0], model.predict(rows), rtol=1e-5)


WORDS = ["great film", "Großer Ärger", "a dull film", "dull and bad", "great fun", "bad Ärger", "großer Spaß", "fun"]
TEXTS = [
    f"{WORDS[i % 8]} {WORDS[(i * 3 + i // 8) % 8]}, {'x' if i % 3 else 'I'} {WORDS[i * i % 8]}" for i in range(200)
]
MOODS = np.array([(i % 8 + i // 8) % 3 for i in range(200)])
COUNTED: dict[str, Any] = {
    "plain": TfidfVectorizer(),
    "pairs": TfidfVectorizer(ngram_range=(1, 2)),
    "logarithms": TfidfVectorizer(sublinear_tf=True),
    "in two steps": make_pipeline(CountVectorizer(), TfidfTransformer(sublinear_tf=True)),
}
SAID = {
    "nothing": None,
    "a tensor": Signature(tensors=((None, "str", (-1,)),)),
    "objects": Signature(tensors=((None, "object", (-1, 1)),)),
    "a column": Signature(columns=(("X", "string"),)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_text_is_cut_and_counted_as_by_the_original(opened, name) -> None:
    model = make_pipeline(COUNTED[name], LogisticRegression(C=50, max_iter=500)).fit(TEXTS[:100], MOODS[:100])
    batch = pa.record_batch({"X": pa.array(TEXTS)})
    scorer = opened(model)
    assert share(scorer, model, batch, TEXTS) == 1
    (scored,) = scorer.score([Batch(0, 0, batch)])
    wanted = 1 - model.predict_proba(TEXTS).max(axis=1)
    np.testing.assert_allclose(scored.variables["confidence"], wanted, atol=1e-4)


def test_words_that_a_text_lacks_are_missing_to_xgboost(opened) -> None:
    model = make_pipeline(CountVectorizer(), XGBClassifier(n_estimators=5, n_jobs=1)).fit(TEXTS, MOODS)
    assert share(opened(model), model, pa.record_batch({"X": pa.array(TEXTS)}), TEXTS) == 1


@pytest.mark.parametrize("said", SAID)
def test_text_is_text_whatever_the_signature_says(opened, said) -> None:
    model = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(TEXTS, MOODS)
    scorer = opened(model, SAID[said])
    assert [str(item) for item in scorer.session.inputs] == ["X: string[?, 1]"]
    assert share(scorer, model, pa.record_batch({"X": pa.array(TEXTS)}), TEXTS) == 1


def test_columns_that_are_chosen_by_name(opened) -> None:
    frame = pd.DataFrame(
        {
            "amount": RNG.lognormal(3, 1, 600),
            "age": RNG.integers(18, 90, 600),
            "code": RNG.integers(0, 5, 600),
            "city": RNG.choice(["Rom", "Paris", "Köln"], 600),
            "vip": RNG.random(600) < 0.2,
        }
    )
    truth = (frame.amount > 20) ^ (frame.city == "Köln") ^ (frame.code == 3)
    kinds = {"amount": "double", "age": "long", "code": "long", "city": "string", "vip": "boolean"}
    encoder = OneHotEncoder(handle_unknown="ignore")
    for names in (["amount", "age", "code"], [*kinds]):
        sorts = [name for name in ("code", "city") if name in names]
        columns = ColumnTransformer([("n", StandardScaler(), ["amount", "age"]), ("c", encoder, sorts)])
        model = make_pipeline(columns, PLAIN).fit(frame[names], truth)
        scorer = opened(model, Signature(tuple((name, kinds[name]) for name in names)))
        assert share(scorer, model, pa.RecordBatch.from_pandas(frame[names]), frame[names]) == 1
        exact = scorer.exact(pa.RecordBatch.from_pandas(frame[names]))
        assert (answers_of(model, exact.tensors) == model.predict(frame[names])).all()


LEARNED = {
    "as NaN": np.where(RNG.random(900) < 0.2, np.nan, RNG.choice(["Rom", "Paris", "Köln"], 900).astype(object)),
    "as None": np.where(RNG.random(900) < 0.2, None, RNG.choice(["Rom", "Paris", "Köln"], 900).astype(object)),
}
ENCODED: dict[str, Any] = {
    "one for each": (OneHotEncoder(handle_unknown="ignore"), PLAIN),
    "but the first": (OneHotEncoder(drop="first", handle_unknown="ignore"), PLAIN),
    "numbered": (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), FEW),
    "numbered from zero": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
        FEW,
    ),
    "rare ones together": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=9, min_frequency=0.25),
        FEW,
    ),
    "searched": (OneHotEncoder(handle_unknown="ignore"), GridSearchCV(PLAIN, {"C": [1, 2]}, cv=2)),
    "by the truth": (TargetEncoder(random_state=0), FEW),
}


def towns(learned: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with two columns of text, the first with gaps, and the truth, which the gaps have their part in."""
    town = LEARNED[learned]
    frame = pd.DataFrame({"amount": np.arange(900) % 7.0, "town": pd.Series(town, dtype=object)})
    frame["kind"] = pd.Series(["<missing>" if place % 5 else "b" for place in range(900)], dtype=object)
    gaps = frame.town.isna().to_numpy()
    return frame, (np.where(gaps, 3, town == "Köln") + frame.amount.to_numpy() / 7 > 1.3).astype(int)


TOWNS = Signature((("amount", "double"), ("town", "string"), ("kind", "string")))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learned", LEARNED)
@pytest.mark.parametrize("name", ENCODED)
def test_a_missing_text_is_what_the_original_learned_of_it(opened, name, learned) -> None:
    frame, truth = towns(learned)
    encoder, then = ENCODED[name]
    encoded = ColumnTransformer([("c", encoder, ["town", "kind"])], remainder="passthrough")
    model = make_pipeline(encoded, then).fit(frame[:400], truth[:400])
    asked = frame[400:].reset_index(drop=True)
    asked.loc[:20, "town"] = "Oslo"
    asked.loc[20:40, "town"] = ""
    asked.loc[40:60, "kind"] = asked.town[asked.town.isna()].iloc[0]  # which no row of the training lacks
    rows, wanted = pa.RecordBatch.from_pandas(asked, preserve_index=False), model.predict(asked)
    scorer = opened(model, TOWNS)
    (scored,) = scorer.score([Batch(0, 0, rows)])
    assert scored.predictions.tolist() == canonical_classes(wanted).tolist()
    assert answers_of(model, scorer.exact(rows).tensors).tolist() == wanted.tolist()
    assert scorer.feeding.missing_text == "<<missing>>"  # the other is a word of the training


def test_where_a_text_is_given_for_missing_ones_both_are_given_that(opened) -> None:
    frame, truth = towns("as NaN")
    encoded = ColumnTransformer([("c", OneHotEncoder(handle_unknown="ignore"), ["town"])], remainder="drop")
    model = make_pipeline(encoded, PLAIN).fit(frame, truth)
    rows = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    scorer = opened(model, TOWNS, missing=Missing(text="Köln", own=False))
    (scored,) = scorer.score([Batch(0, 0, rows)])
    wanted = model.predict(frame.fillna({"town": "Köln"}))
    assert scored.predictions.tolist() == canonical_classes(wanted).tolist()
    assert answers_of(model, scorer.exact(rows).tensors).tolist() == wanted.tolist()


def test_two_kinds_of_missing_text_are_refused() -> None:
    frame, truth = towns("as NaN")
    frame.loc[:30, "town"] = None
    encoded = ColumnTransformer([("c", OneHotEncoder(handle_unknown="ignore"), ["town"])], remainder="passthrough")
    model = make_pipeline(encoded, DecisionTreeClassifier()).fit(frame[["amount", "town"]], truth)
    with pytest.raises(ModelError, match="both None and NaN"):
        convert(model, Signature(TOWNS.columns[:2]))


class Prophet:
    """No estimator, though it predicts."""

    def predict(self, rows: Any) -> Any:
        return rows


@pytest.mark.parametrize("thing", [{"a": 1}, Prophet(), StandardScaler()], ids=lambda thing: type(thing).__name__)
def test_what_is_no_estimator_is_told(thing) -> None:
    with pytest.raises(ModelError, match=r"is a .*(dict|Prophet|StandardScaler), which is no estimator that predicts"):
        convert(thing)


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_converted_is_told_in_two_lines() -> None:
    texts = make_pipeline(HashingVectorizer(), PLAIN).fit(TEXTS, MOODS)
    accents = make_pipeline(TfidfVectorizer(strip_accents="unicode"), PLAIN).fit(TEXTS, MOODS)
    kinds = HistGradientBoostingClassifier(categorical_features=[0], max_iter=2)
    kinds.fit(np.abs(ROWS.round()), TRUTH)
    for model in (NearestCentroid().fit(ROWS, TRUTH), texts, accents, kinds):
        with pytest.raises(ModelError, match=r"cannot be converted to ONNX: .*Register it as ONNX") as told:
            convert(model)
        assert "\n" not in str(told.value)
        assert len(str(told.value)) < 320


@pytest.mark.parametrize("kind", [TunedThresholdClassifierCV, FixedThresholdClassifier])
def test_a_threshold_that_the_graph_would_leave_out_is_refused_wherever_it_is(kind) -> None:
    model = kind(LogisticRegression())
    for whole in (model, make_pipeline(StandardScaler(), model), VotingClassifier([("a", PLAIN), ("b", model)])):
        with pytest.raises(ModelError, match=r"it answers by a threshold of its own.*by: flavor"):
            convert(whole.fit(ROWS[FIT], TRUTH[FIT] > 2))


def test_a_model_that_says_nothing_of_its_inputs_is_told() -> None:
    with pytest.raises(ModelError, match="infer_signature"):
        convert(DecisionTreeClassifier())
