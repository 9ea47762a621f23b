"""Boosted trees answer as an ONNX graph what their own library answers, missing values and all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnxruntime
import pytest
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from opmon.abc import ModelFile
from opmon.errors import ModelError
from opmon.scoring.conversion.boosters._sparse import takes_sparse
from opmon.scoring.conversion.boosters._ubjson import read_ubjson
from opmon.scoring.conversion.boosters.asking import answers_of_file
from opmon.scoring.conversion.boosters.from_lightgbm import from_text
from opmon.scoring.conversion.boosters.from_xgboost import from_document
from opmon.scoring.conversion.converting import convert
from opmon.types import Signature

RNG = np.random.default_rng(3)


def inputs(count: int) -> np.ndarray:
    rows = RNG.normal(size=(count, 5))
    rows[:, 4] = np.round(rows[:, 4] * 2) / 2
    rows[RNG.random(rows.shape) < 0.1] = np.nan
    return rows


ROWS, ASKED = inputs(1500), inputs(2000)
SUM = np.nan_to_num(ROWS[:, 0]) + np.nan_to_num(ROWS[:, 1] * ROWS[:, 4]) + RNG.normal(size=1500) * 0.3
TWO, THREE, PRICE = (SUM > 0).astype(int), np.digitize(SUM, [-0.5, 0.5]), np.exp(SUM / 2)
NAMES = np.array(["low", "mid", "top"])[THREE]
SMALL: dict[str, Any] = {"n_estimators": 12, "n_jobs": 1}
STOPS = {"eval_set": [(ROWS[:200], 1 - TWO[:200])], "verbose": False}

XGBOOST: dict[str, tuple[Any, Any]] = {
    "two": (xgboost.XGBClassifier(**SMALL), TWO),
    "a base score": (xgboost.XGBClassifier(**SMALL, base_score=0.2), TWO),
    "three": (xgboost.XGBClassifier(**SMALL), THREE),
    "a forest": (xgboost.XGBRFClassifier(**SMALL), TWO),
    "dart": (xgboost.XGBClassifier(**SMALL, booster="dart", rate_drop=0.5), TWO),
    "pruned": (xgboost.XGBClassifier(**SMALL, tree_method="exact", gamma=1.0), TWO),
    "stopped early": (xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=2, n_jobs=1), TWO),
    "numbers": (xgboost.XGBRegressor(**SMALL), PRICE),
    "counts": (xgboost.XGBRegressor(**SMALL, objective="count:poisson", base_score=2.0), PRICE),
    "shares": (xgboost.XGBRegressor(**SMALL, objective="reg:logistic"), PRICE / PRICE.max()),
}
QUIET: dict[str, Any] = {**SMALL, "verbose": -1}
LIGHTGBM: dict[str, tuple[Any, Any]] = {
    "two": (lightgbm.LGBMClassifier(**QUIET, sigmoid=2.0), TWO + 3),
    "three": (lightgbm.LGBMClassifier(**QUIET), NAMES),
    "each": (lightgbm.LGBMClassifier(**QUIET, objective="multiclassova"), NAMES),
    "a forest": (lightgbm.LGBMClassifier(**QUIET, boosting_type="rf", bagging_freq=1, bagging_fraction=0.7), TWO),
    "nothing is missing": (lightgbm.LGBMClassifier(**QUIET, use_missing=False), TWO),
    "numbers": (lightgbm.LGBMRegressor(**QUIET), PRICE),
    "roots": (lightgbm.LGBMRegressor(**QUIET, reg_sqrt=True), PRICE),
    "counts": (lightgbm.LGBMRegressor(**QUIET, objective="poisson"), PRICE),
    "shares": (lightgbm.LGBMRegressor(**QUIET, objective="cross_entropy"), PRICE / PRICE.max()),
    "soft": (lightgbm.LGBMRegressor(**QUIET, objective="cross_entropy_lambda"), PRICE / PRICE.max()),
    "no split": (lightgbm.LGBMRegressor(**QUIET, min_child_samples=5000), PRICE),
}


def answers(data: bytes, rows: np.ndarray) -> list[Any]:
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (taken,) = session.get_inputs()
    return session.run(None, {taken.name: rows.astype(np.float64 if "double" in taken.type else np.float32)})


def require_alike(data: bytes, rows: np.ndarray, wanted: np.ndarray) -> None:
    given = np.asarray(answers(data, rows)[0]).reshape(-1)
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(given, wanted.reshape(-1), rtol=2e-5, atol=1e-6)
    else:
        assert given.tolist() == wanted.reshape(-1).tolist()


KINDS = {kind: Signature(columns=tuple((f"f{place}", kind) for place in range(5))) for kind in ("double", "float")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["ubj", "json"])
@pytest.mark.parametrize("name", XGBOOST)
def test_a_file_of_xgboost_answers_as_xgboost(name: str, ending: str, kind: str, tmp_path: Path) -> None:
    model, truth = XGBOOST[name]
    model.fit(ROWS, truth, **(STOPS if name == "stopped early" else {}))
    file = ModelFile("xgboost", "xgboost.sklearn.XGBModel", tmp_path / f"model.{ending}")
    model.save_model(file.path)
    rows = ASKED.astype(np.float32 if kind == "float" else np.float64)
    data = convert(file, KINDS[kind])
    require_alike(data, rows, model.predict(rows))
    require_alike(data, rows, answers_of_file(file, rows))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(answers(data, rows)[1], model.predict_proba(rows), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIGHTGBM)
def test_a_model_of_lightgbm_answers_as_lightgbm(name: str, kind: str, tmp_path: Path) -> None:
    model, truth = LIGHTGBM[name]
    model.fit(ROWS, truth)
    rows = ASKED.astype(np.float32 if kind == "float" else np.float64)
    data = convert(model, KINDS[kind])
    require_alike(data, rows, model.predict(rows))
    file = ModelFile("lightgbm", "lightgbm.basic.Booster", tmp_path / "model.lgb")
    model.booster_.save_model(file.path)
    require_alike(convert(file, KINDS[kind]), rows, answers_of_file(file, rows))


def test_values_beside_a_threshold_go_the_way_that_they_went() -> None:
    """The closest float32 of a threshold in float64 may be on its other side."""
    grid = np.unique(np.float32(RNG.normal(size=4000)))
    model = lightgbm.LGBMRegressor(**QUIET, min_child_samples=1).fit(grid[:, None].astype(float), np.sin(40 * grid))
    thresholds = from_text(model.booster_.model_to_string()).trees[0].threshold.astype(np.float32)
    around = np.concatenate([np.nextafter(thresholds, np.float32(way)) for way in (-9, 9)] + [thresholds])[:, None]
    data = convert(model, Signature(columns=(("x", "float"),)))
    require_alike(data, around, model.predict(around))


def test_the_rounds_after_the_best_count_for_a_booster_alone(tmp_path: Path) -> None:
    model = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=2).fit(ROWS, TWO, **STOPS)
    told = json.loads(bytes(model.get_booster().save_raw("json")))
    every, best = from_document(told, best=False), from_document(told, best=True)
    assert len(every.trees) > len(best.trees) == model.best_iteration + 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [lightgbm.LGBMClassifier(**QUIET), xgboost.XGBClassifier(**SMALL)])
def test_boosted_trees_in_a_pipeline_are_converted_with_it(kind: Any) -> None:
    model = make_pipeline(StandardScaler(), kind).fit(ROWS, THREE)
    require_alike(convert(model, KINDS["double"]), ASKED, model.predict(ASKED))


CATEGORIES = np.column_stack([RNG.integers(0, 9, (1500, 2)), np.where(SUM > 0, 0, RNG.integers(-2, 3, 1500))])
ANSWERS = ((CATEGORIES[:, 0] % 3 == 1) ^ (CATEGORIES[:, 2] > 0)).astype(int)
ENCODER, XGB = OneHotEncoder(handle_unknown="ignore"), xgboost.XGBClassifier(**SMALL)
SOME = ColumnTransformer([("c", ENCODER, [0, 1])], remainder="passthrough", sparse_threshold=1.0)
SPARSE: dict[str, Any] = {
    "encoded": make_pipeline(ENCODER, XGB),
    "with numbers": make_pipeline(SOME, XGB),
    "scaled": make_pipeline(SOME, StandardScaler(with_mean=False), XGB),
    "a pipeline in it": make_pipeline(make_pipeline(SOME, MaxAbsScaler()), XGB),
    "chosen": make_pipeline(ENCODER, SelectKBest(chi2, k=9), XGB),
    "united": make_pipeline(FeatureUnion([("a", ENCODER), ("b", StandardScaler())]), XGB),
    "voting": make_pipeline(ENCODER, VotingClassifier([("a", XGB), ("b", DecisionTreeClassifier())], voting="soft")),
    "searched": make_pipeline(ENCODER, GridSearchCV(XGB, {"max_depth": [2, 3]}, cv=2)),
    "searched as a whole": GridSearchCV(make_pipeline(SOME, XGB), {"xgbclassifier__max_depth": [2, 3]}, cv=2),
    "calibrated": make_pipeline(ENCODER, CalibratedClassifierCV(XGB, cv=2)),
    "stacked": make_pipeline(ENCODER, StackingClassifier([("a", XGB)], xgboost.XGBClassifier(**SMALL), cv=2)),
    "LightGBM": make_pipeline(SOME, lightgbm.LGBMClassifier(**QUIET)),
    "dense": make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), XGB),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPARSE)
def test_what_a_sparse_matrix_leaves_out_is_missing_to_xgboost(name: str) -> None:
    model = SPARSE[name].fit(CATEGORIES[:700], ANSWERS[:700])
    rows = CATEGORIES.astype(float)
    kinds = Signature(columns=tuple((name, "double") for name in "abc"))
    require_alike(convert(model, kinds), rows, model.predict(rows))
    np.testing.assert_allclose(answers(convert(model, kinds), rows)[1], model.predict_proba(rows), atol=1e-5)


def test_where_nobody_knows_whether_a_matrix_is_sparse_xgboost_is_refused() -> None:
    model = make_pipeline(ENCODER, PolynomialFeatures(), XGB).fit(CATEGORIES, ANSWERS)
    with pytest.raises(ModelError, match="may be sparse"):
        convert(model, Signature(columns=tuple((name, "double") for name in "abc")))


def test_a_sparse_matrix_may_become_a_dense_one_on_its_way() -> None:
    model = make_pipeline(ENCODER, TruncatedSVD(5), XGB).fit(CATEGORIES, ANSWERS)
    assert takes_sparse(model, model[1]) is True
    assert takes_sparse(model, model[2]) is False
    assert takes_sparse(model[2], model[2]) is False


def boosted(model: Any, tmp_path: Path) -> ModelFile:
    """The file of a model of either library."""
    library = type(model).__module__.split(".")[0]
    file = ModelFile(library, f"{library}.Model", tmp_path / "model.json")
    getattr(model, "booster_", model).save_model(file.path)
    return file


CODES = np.column_stack([ROWS[:, 0], RNG.integers(0, 9, 1500)])
REFUSED: dict[str, tuple[Any, str]] = {
    "categories of LightGBM": (
        lambda: lightgbm.LGBMRegressor(**QUIET).fit(CODES, np.sin(CODES[:, 1]), categorical_feature=[1]),
        "split by categories",
    ),
    "zero for missing": (
        lambda: lightgbm.LGBMRegressor(**QUIET, zero_as_missing=True).fit(np.abs(ROWS), PRICE),
        "zero_as_missing",
    ),
    "linear leaves": (lambda: lightgbm.LGBMRegressor(**QUIET, linear_tree=True).fit(ROWS, PRICE), "linear models"),
    "categories of XGBoost": (
        lambda: xgboost.XGBRegressor(**SMALL, feature_types=["q", "c"]).fit(CODES, np.sin(CODES[:, 1])),
        "split by categories",
    ),
    "no trees": (lambda: xgboost.XGBRegressor(**SMALL, booster="gblinear").fit(ROWS, PRICE), "gblinear"),
    "another objective": (lambda: xgboost.XGBClassifier(**SMALL, objective="binary:hinge").fit(ROWS, TWO), "hinge"),
    "two numbers": (
        lambda: xgboost.XGBRegressor(**SMALL).fit(ROWS, np.stack([PRICE, SUM], 1)),
        "2 numbers for each input",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_a_graph_would_answer_otherwise_is_refused_in_words(name: str, tmp_path: Path) -> None:
    made, words = REFUSED[name]
    file = boosted(made(), tmp_path)
    with pytest.raises(ModelError, match=rf"cannot be converted to ONNX: .*{words}.*scoring: {{by: flavor"):
        convert(file)


def test_a_value_that_stands_for_missing_is_refused_in_words() -> None:
    model = make_pipeline(StandardScaler(), xgboost.XGBClassifier(**SMALL, missing=-9.0)).fit(ROWS, TWO)
    with pytest.raises(ModelError, match=r"takes -9\.0 for missing"):
        convert(model, KINDS["double"])


def test_columns_of_text_and_too_few_of_them_are_refused(tmp_path: Path) -> None:
    file = boosted(xgboost.XGBClassifier(**SMALL).fit(ROWS, TWO), tmp_path)
    with pytest.raises(ModelError, match="takes columns of the type string"):
        convert(file, Signature(columns=(("town", "string"),)))
    with pytest.raises(ModelError, match="takes 5 numbers, and was logged with 1 columns"):
        convert(file, Signature(columns=(("age", "double"),)))


def test_a_damaged_file_is_an_error_and_nothing_else(tmp_path: Path) -> None:
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(ROWS, TWO)
    whole = bytes(model.get_booster().save_raw("ubj"))
    path = tmp_path / "model.ubj"
    for cut in range(0, len(whole) - 1, 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(ModelError):
            convert(ModelFile("xgboost", "xgboost.core.Booster", path))
    for at in range(0, len(whole), 61):  # it is converted or refused, and never ends otherwise
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            convert(ModelFile("xgboost", "xgboost.core.Booster", path))
        except ModelError:
            continue


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[" * 99, b"[$", b"[$d", b"[$d#l\x7f\xff\xff\xff", b"[#l\xff\xff\xff\xff", b"S" * 9, b"Q", b"{U\x01"],
)
def test_bytes_that_are_no_ubjson_are_refused(data: bytes) -> None:
    with pytest.raises(ModelError):
        read_ubjson(data)


def test_a_tree_that_runs_in_circles_is_refused(tmp_path: Path) -> None:
    told = json.loads(bytes(xgboost.XGBClassifier(n_estimators=1).fit(ROWS, TWO).get_booster().save_raw("json")))
    told["learner"]["gradient_booster"]["model"]["trees"][0]["left_children"][1] = 0
    path = tmp_path / "model.json"
    path.write_text(json.dumps(told))
    with pytest.raises(ModelError, match="a tree of the model is broken at node 0"):
        convert(ModelFile("xgboost", "xgboost.core.Booster", path))
