"""Models as teams log them, run in a process of their own: theirs is the answer, and what they do harms nobody."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import lightgbm
import mlflow
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from mlflow.models import infer_signature
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC, LinearSVC

from opmon.errors import ModelError, SourceError
from opmon.registry._asked import _told
from opmon.registry.originals import runnable
from opmon.scoring.flavor.answers import AnswerReader
from opmon.scoring.flavor.process import Worker
from opmon.scoring.flavor.scorer import FlavorScorer
from opmon.scoring.scored import Scored
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Batch, Signature
from tests.patience import until
from tests.scoring.flavor.custom import (
    DIES,
    EATS,
    FAILS,
    FEWER,
    FORKS,
    HANGS,
    MISNAMED,
    NAMED,
    PRINTS,
    RAISES,
    SCORES,
    SEVERAL,
    SHARES,
    TABLE,
    Custom,
)

RNG = np.random.default_rng(1)
NUMBERS = pd.DataFrame(RNG.normal(size=(300, 4)), columns=["a", "b", "c", "d"])
LABELS = np.where(NUMBERS["a"] + 0.3 * RNG.normal(size=300) > 0, "yes", "no")
MIXED = NUMBERS.assign(b=np.where(NUMBERS["b"] > 0, "north", "south"), c=NUMBERS["c"].where(NUMBERS["c"] < 1))
TEXTS = pd.DataFrame({"text": np.where(LABELS == "yes", "good fine nice", "bad poor sad")})


def scorer_of(folder: Path, **given: Any) -> FlavorScorer:
    timeout, memory = given.pop("timeout", 60.0), given.pop("memory", None)
    found = runnable(folder)
    return FlavorScorer(Worker(sys.executable, found.script, found.model, timeout, memory), **given)


def answers(scorer: FlavorScorer, rows: pd.DataFrame | pa.Table, first: int = 0) -> Scored:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)
    (found,) = scorer.score([Batch(0, first, table.combine_chunks().to_batches()[0])])
    return found


def save(model: Any, folder: Path, **given: Any) -> None:
    mlflow.sklearn.save_model(model, folder, serialization_format="cloudpickle", pip_requirements=[], **given)


MODELS: dict[str, tuple[Any, pd.DataFrame, Any]] = {
    "boosting with gaps and words": (
        make_pipeline(
            make_column_transformer((OneHotEncoder(), ["b"]), remainder="passthrough"),
            HistGradientBoostingClassifier(max_iter=5),
        ),
        MIXED,
        LABELS,
    ),
    "a margin decides": (SVC(probability=True, random_state=0), NUMBERS, LABELS),
    "no probabilities": (LinearSVC(), NUMBERS, LABELS),
    "truth values": (LogisticRegression(), NUMBERS, LABELS == "yes"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_scikit_learn_model_answers_as_it_does_by_itself(tmp_path: Path, name: str) -> None:
    model, rows, labels = MODELS[name]
    save(model.fit(rows, labels), tmp_path / "m", signature=infer_signature(rows, labels))
    found = answers(scorer_of(tmp_path / "m"), rows, first=100)
    own = {"True": "true", "False": "false"}
    assert found.predictions.tolist() == [own.get(str(value), str(value)) for value in model.predict(rows)]
    assert found.rows.tolist() == list(range(100, 400))
    if hasattr(model, "predict_proba"):
        assert found.variables["confidence"] == pytest.approx(1 - model.predict_proba(rows).max(axis=1), abs=1e-6)
    else:
        assert dict(found.variables) == {}


CATEGORIES = MIXED.assign(b=MIXED["b"].astype(pd.CategoricalDtype(["south", "north"])))
BOOSTED: dict[str, Any] = {
    "LightGBM": lightgbm.LGBMRegressor(n_estimators=5, verbose=-1),
    "classes of LightGBM": lightgbm.LGBMClassifier(n_estimators=5, verbose=-1),
    "XGBoost": xgboost.XGBRegressor(n_estimators=5, enable_categorical=True),
}


@pytest.mark.parametrize("name", BOOSTED)
def test_words_reach_boosted_trees_as_the_categories_of_their_training(tmp_path: Path, name: str) -> None:
    model = BOOSTED[name]
    truth = LABELS if "classes" in name else NUMBERS["a"] * (MIXED["b"] == "north")
    model.fit(CATEGORIES, truth)
    flavor = mlflow.xgboost if name == "XGBoost" else mlflow.lightgbm
    form = {"serialization_format": "cloudpickle"} if "classes" in name else {}  # skops, of the other LightGBM's
    flavor.save_model(model, tmp_path / "m", pip_requirements=[], signature=infer_signature(MIXED), **form)
    problem: Any = "classification" if "classes" in name else "regression"
    scorer = scorer_of(tmp_path / "m", problem=problem)
    for rows in (MIXED, MIXED[MIXED["b"] == "north"]):  # codes of what is there would be others in the second
        found = answers(scorer, rows)
        own = model.predict(CATEGORIES.loc[rows.index])
        assert found.predictions.tolist() == (own.tolist() if "classes" in name else pytest.approx(own.tolist()))


def test_a_model_of_texts_and_one_of_numbers(tmp_path: Path) -> None:
    texts = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS["text"], LABELS)
    save(texts, tmp_path / "texts")
    assert answers(scorer_of(tmp_path / "texts"), TEXTS).predictions.tolist() == LABELS.tolist()
    forest = RandomForestRegressor(5, random_state=0).fit(NUMBERS, NUMBERS["a"])
    save(forest, tmp_path / "forest", signature=infer_signature(NUMBERS, NUMBERS["a"]))
    found = answers(scorer_of(tmp_path / "forest", problem="regression"), NUMBERS)
    assert found.predictions == pytest.approx(forest.predict(NUMBERS))


ROOMS = pd.DataFrame({"rooms": np.array([2, 3, 4, 5]), "garden": [True, False, True, False]})
"""What MLflow calls ``long`` and ``boolean``."""


@pytest.mark.parametrize(
    ("column", "values", "answered"),
    [
        ("rooms", [2.0, 3.0, 4.0], [0, 1, 2]),
        ("rooms", [2.0, 2.9, 4.0], [0, 2]),
        ("rooms", [2.0, 1e19, float("inf")], [0]),
        ("rooms", [Decimal(2), Decimal("2.5")], [0]),
        ("garden", [0, 1, 2], [0, 1]),
        ("garden", ["no", "False"], []),
    ],
)
def test_a_model_is_asked_about_the_values_that_were_logged(
    tmp_path: Path, column: str, values: list[Any], answered: list[int]
) -> None:
    """A number that does not fit the signature's type is refused, as MLflow does, and not cut to fit."""
    model = LinearRegression().fit(ROOMS, 100.0 * ROOMS["rooms"] + 50.0 * ROOMS["garden"])
    save(model, tmp_path / "m", signature=infer_signature(ROOMS, [1.0]))
    rows = pd.DataFrame({"rooms": 3, "garden": True} | {column: values})
    found = answers(scorer_of(tmp_path / "m", problem="regression"), rows)
    assert found.rows.tolist() == answered
    own = [100.0 * float(row.rooms) + 50.0 * float(row.garden) for row in rows.iloc[answered].itertuples()]
    assert found.predictions == pytest.approx(own)
    assert set(found.rejected) == set(range(len(rows))) - set(answered)


def test_classes_may_be_called_otherwise_and_columns_too(tmp_path: Path) -> None:
    model = LogisticRegression().fit(NUMBERS, LABELS == "yes")
    signature = infer_signature(NUMBERS, LABELS == "yes")
    save(model, tmp_path / "m", signature=signature)
    spellings = Spellings.of({"paid": [True, 1], "lost": [False, 0]})
    renamed = NUMBERS.rename(columns=str.upper).assign(more="x")
    scorer = scorer_of(
        tmp_path / "m",
        classes=("paid", "lost"),
        spellings=spellings,
        features=("A", "B", "C", "D"),
        signature=Signature(columns=tuple((name, "double") for name in NUMBERS.columns)),
    )
    found = answers(scorer, renamed)
    assert found.predictions.tolist() == np.where(model.predict(NUMBERS), "paid", "lost").tolist()
    assert found.classes == ("lost", "paid")
    with pytest.raises(SourceError, match=r"no column 'A'.*inputs.features"):
        answers(scorer, NUMBERS)
    other = FlavorScorer(scorer.worker, classes=("x", "y"))
    with pytest.raises(ModelError, match=r"classes are x, y, and the model's own are false, true"):
        answers(other, NUMBERS)


ROWS = NUMBERS.assign(d=0.0)
TRUE = np.where(ROWS["a"] > 0, "yes", "no").tolist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("custom") / "model"
    mlflow.pyfunc.save_model(path, python_model=Custom(), pip_requirements=[])
    return path


@pytest.fixture(scope="module")
def custom(folder: Path) -> Iterator[FlavorScorer]:
    scorer = scorer_of(folder, timeout=3.0, memory=2 << 30)
    yield scorer
    scorer.close()


def doing(does: int, rows: pd.DataFrame = ROWS) -> pd.DataFrame:
    return rows.assign(d=float(does))


def test_what_a_custom_model_answers_may_have_many_forms(custom: FlavorScorer) -> None:
    p = 1 / (1 + np.exp(-np.clip(ROWS["a"].to_numpy(), -9, 9)))
    table = answers(custom, doing(TABLE))
    assert table.predictions.tolist() == np.where(p > 0.8, "yes", "no").tolist()
    assert (table.classes, table.unlike) == (("no", "yes"), int(((p > 0.5) & (p <= 0.8)).sum()))
    scores = answers(dataclasses.replace(custom, classes=("no", "yes")), doing(SCORES))
    assert scores.predictions.tolist() == np.where(p > 0.5, "yes", "no").tolist()
    assert scores.variables["confidence"] == pytest.approx(1 - np.maximum(p, 1 - p), abs=1e-6)
    shares = answers(dataclasses.replace(custom, classes=("no", "yes")), doing(SHARES))
    assert shares.predictions.tolist() == scores.predictions.tolist()
    assert shares.variables["confidence"] == pytest.approx(scores.variables["confidence"])
    (several,) = set(answers(custom, doing(SEVERAL).head(1)).rejected.values())
    assert "its answer has the columns ['x', 'y', 'z']" in several


def test_scores_are_of_the_classes_that_the_model_answers_whatever_more_their_names_say(custom: FlavorScorer) -> None:
    for rows in (ROWS, ROWS[ROWS["a"] > 0]):
        named = answers(custom, doing(NAMED, rows))
        assert (named.classes, named.unlike) == (("no", "yes"), 0)
        assert named.predictions.tolist() == np.where(rows["a"] > 0, "yes", "no").tolist()
    with pytest.raises(ModelError, match=r"answers 'yes', and its scores are called risk, chance: say in classes"):
        answers(custom, doing(MISNAMED))
    few = answers(custom, doing(MISNAMED, ROWS.head(2)))
    assert (few.predictions.tolist(), few.unlike) == (TRUE[:2], 2), "they may be strays, of which nothing is learned"
    spellings = Spellings.of({"no": ["risk"], "yes": ["chance"]})
    told = answers(dataclasses.replace(custom, classes=("no", "yes"), spellings=spellings), doing(MISNAMED))
    assert (told.classes, told.unlike, told.predictions.tolist()) == (("no", "yes"), 0, TRUE)


@pytest.mark.parametrize(
    ("labels", "names", "classes"),
    [
        ([0, 1], ["proba_0", "proba_1"], ["0", "1"]),
        ([1.0, None], ["proba_0", "proba_1"], ["0", "1"]),
        ([True, False], ["p.false", "p.true"], ["false", "true"]),
        (["New York"], ["proba_New York", "proba_New Jersey"], ["New York", "New Jersey"]),
        (["good"], ["good score", "bad score"], ["good", "bad"]),
        (["class_a"], ["class_a", "class_b"], ["class_a", "class_b"]),
        ([None], ["class_a", "class_b"], ["class_a", "class_b"]),
        (["a"], ["a", "a_b"], ["a", "a_b"]),
    ],
)
def test_names_of_scores_lose_what_they_have_in_common_where_the_answers_do(
    labels: list[Any], names: list[str], classes: list[str]
) -> None:
    rows = pd.DataFrame({"label": pd.Series(labels, dtype=object), **dict.fromkeys(names, 0.5)})
    assert _told(rows)["classes"] == classes


CERTAIN = ROWS.assign(a=np.where(ROWS["a"] > 0, 50.0, -50.0))
"""Of these the model is so sure that its probabilities are 0 and 1."""


def in_batches(scorer: FlavorScorer, rows: pd.DataFrame, size: int) -> list[Scored]:
    given = pa.Table.from_pandas(doing(SHARES, rows), preserve_index=False).to_batches(max_chunksize=size)
    return list(scorer.score(Batch(0, size * number, batch) for number, batch in enumerate(given)))


@pytest.mark.parametrize("size", [1, 4, 8])
@pytest.mark.parametrize("classes", [("no", "yes"), ("0", "1"), None])
def test_probabilities_are_read_as_such_however_the_inputs_come(custom: FlavorScorer, size: int, classes: Any) -> None:
    rows = pd.concat([ROWS.head(3), CERTAIN.head(13)])
    fresh = FlavorScorer(custom.worker, classes=classes)
    (whole,), parts = in_batches(fresh, rows, 16), in_batches(FlavorScorer(custom.worker, classes=classes), rows, size)
    for name, values in whole.variables.items():
        assert np.concatenate([part.variables[name] for part in parts]).tolist() == values.tolist()
    assert np.concatenate([part.predictions for part in parts]).tolist() == whole.predictions.tolist()
    assert {part.classes for part in in_batches(fresh.keeping_scores(), CERTAIN.head(4), 1)} == {whole.classes}


def test_zeros_and_ones_are_probabilities_where_the_classes_are_called_otherwise(custom: FlavorScorer) -> None:
    spelt = Spellings.of({"no": ["0"], "yes": ["1"]})
    for classes, spellings, certain in [
        (("no", "yes"), Spellings({}), True),
        (("no", "yes"), spelt, False),
        (("0", "1"), Spellings({}), False),
        (("a", "b", "c"), Spellings({}), False),
        (None, Spellings({}), False),
    ]:
        scorer = FlavorScorer(custom.worker, classes=classes, spellings=spellings)
        (found,) = in_batches(scorer, CERTAIN, len(CERTAIN))
        first, second = (classes or ("0", "1"))[:2]
        assert found.predictions.tolist() == np.where(CERTAIN["a"] > 0, second, first).tolist()
        assert bool(found.variables) == certain


def test_a_bad_input_costs_only_itself(custom: FlavorScorer) -> None:
    bad = ROWS.copy()
    for row, does in {77: RAISES, 78: DIES, 79: EATS, 80: HANGS}.items():
        bad.loc[row, "a"] = does
    found = answers(custom, bad)
    assert found.rejected == {
        77: "the model failed: ValueError: a is too large",
        78: "the model failed: its process ended (exit code 3)",
        79: found.rejected[79],
        80: "the model failed: it gave no answer within 3 seconds (scoring.timeout)",
    }
    assert found.rejected[79].startswith("the model failed: the model ran out of memory (")
    assert found.predictions.tolist() == TRUE[:77] + TRUE[81:]


@pytest.mark.parametrize("labels", [[1.0, np.nan, 0.0], ["1", " ", "0"], [1.0, np.inf, 0.0], [b"1", None, b"0"]])
def test_an_answer_that_is_none_costs_only_its_input(labels: list[Any]) -> None:
    reader = AnswerReader("classification", ("0", "1"), AS_SPELT, "auto", 0.5, False, None)
    predictions, good, *_ = reader.read(pa.table({"labels": labels}), {})
    assert (predictions[good].tolist(), good.tolist()) == (["1", "0"], [True, False, True])


def test_what_kind_of_answers_a_model_gives_is_learned_beside_a_bad_input(custom: FlavorScorer) -> None:
    scorer, bad = FlavorScorer(custom.worker), ROWS.copy()
    bad.loc[7, "a"] = RAISES
    _, table = scorer.ask(pa.RecordBatch.from_pandas(bad, preserve_index=False))
    assert table.num_rows == len(ROWS) - 1
    with pytest.raises(ModelError, match="a is too large"):
        scorer.ask(pa.RecordBatch.from_pandas(bad.iloc[7:8], preserve_index=False))


def test_a_model_that_prints_or_forks_does_no_harm(folder: Path) -> None:
    scorer = scorer_of(folder)
    for _ in range(20):
        assert answers(scorer, doing(PRINTS)).predictions.tolist() == TRUE
    assert answers(scorer, doing(FORKS)).predictions.tolist() == TRUE
    assert scorer.worker.process is not None
    group = scorer.worker.process.pid
    assert sum(line.split()[4] == str(group) for line in _processes()) == 2
    scorer.close()
    until(lambda: not any(line.split()[4] == str(group) for line in _processes()))  # gone a moment later


def test_a_model_that_always_fails_is_soon_given_up(custom: FlavorScorer) -> None:
    for does, told in ((FAILS, "RuntimeError: no weights"), (FEWER, "answers for")):
        found = answers(custom, doing(does))
        assert len(found.rejected) == 300
        assert all(told in reason for reason in found.rejected.values())


def test_a_model_that_always_dies_stops_the_round(custom: FlavorScorer) -> None:
    with pytest.raises(ModelError, match=r"gives no answers: its process ended \(exit code 3\)"):
        answers(FlavorScorer(custom.worker), ROWS.head(4).assign(a=DIES))


def _processes() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            told = path.read_text()
        except OSError:
            continue
        if " Z " not in told:
            yield told.replace(told[told.find("(") : told.rfind(")") + 1], "name")


def test_a_model_that_cannot_be_loaded_says_why(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "m")
    (tmp_path / "m" / "python_model.pkl").write_bytes(b"broken")
    with pytest.raises(ModelError, match=r"not loaded: .*scoring.env to a python that has it"):
        scorer_of(tmp_path / "m").describe()
    found = runnable(tmp_path / "m")
    with pytest.raises(ModelError, match=r"/no/python cannot be started: No such file.*scoring.env"):
        Worker("/no/python", found.script, found.model).start()
