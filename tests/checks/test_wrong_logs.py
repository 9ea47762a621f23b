"""Wrong vocabularies, units and columns: ``opmon check`` says each in words, and no run gets as far as a label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from skl2onnx import to_onnx

from opmon.checks import check_monitor
from opmon.config import Settings
from opmon.store import queue
from tests.conftest import Workbench, point_mlflow_at

ROWS = 200
NAMES = ["age", "income", "amount"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, mlflow_uri: str) -> Workbench:
    """Two models, of classes and of a price, and one log with all that can go wrong beside what is right."""
    from sklearn.linear_model import LinearRegression, LogisticRegression

    point_mlflow_at(mlflow_uri)
    bench = Workbench(tmp_path_factory.mktemp("wrongs"), mlflow_uri, "wrongs", "")
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(ROWS, 3)) * [10, 2, 1] + [40, 3, 5]).astype(np.float32)
    lean = (values[:, 0] - 40) / 10 - (values[:, 1] - 3) + 0.3 * (values[:, 2] - 5)
    words = np.where(lean > 0, "default", "paid")
    classifier = LogisticRegression(max_iter=1000).fit(values, words)
    regressor = LinearRegression().fit(values, 10 * lean + 200)

    def registered(model: Any, name: str, **options: Any) -> str:
        graph = to_onnx(model, values[:1], target_opset=17, **options)
        bench.register(onnx.load_from_string(graph.SerializeToString()), name, NAMES)
        return bench.model

    price = registered(regressor, "wrong-prices")
    registered(classifier, "wrong-loans", options={"zipmap": False})
    said, scores, prices = classifier.predict(values), classifier.predict_proba(values)[:, 0], regressor.predict(values)
    table = {
        "key": [f"r{row}" for row in range(ROWS)],
        **{name: values[:, place] for place, name in enumerate(NAMES)},
        "said": said,
        "codes": (said == "default").astype(int),
        "shout": np.char.upper(said.astype(str)),
        "german": np.where(said == "paid", "bezahlt", "ausgefallen"),
        "yes": said == "default",
        "score": 1 - scores,
        "percent": 100 * (1 - scores),
        "other_score": scores,
        "swapped": np.where(said == "paid", "default", "paid"),
        "shuffled": rng.permutation(said),
        "three": np.where(np.arange(ROWS) % 9 == 0, "pending", said),
        "listed": [[value] for value in said],
        "cents": 100 * prices,
        "euros": [f"{value:.2f} EUR" for value in prices],
        "income_in_thousands": values[:, 1] / 1000,
        "comma": [f"{value:.2f}".replace(".", ",") for value in values[:, 1]],
        "band": np.where(values[:, 1] > 3, "high", "low"),
        "nothing": pa.nulls(ROWS, pa.float32()),
        "gaps": [None, *map(str, range(1, ROWS))],
        "day": ["Monday"] * ROWS,
        "served_by": ["7f3a9c"] * ROWS,
        "of_other": ["models:/digits/1"] * ROWS,
    }
    pq.write_table(pa.table(table), bench.folder / "production" / "log.parquet")
    bench.prices = price  # type: ignore[attr-defined]
    return bench


def columns(**named: Any) -> dict[str, Any]:
    return {"columns": {"id": "key", **named}}


def fed(*names: str) -> dict[str, Any]:
    return columns(prediction="said") | {"inputs": {"features": list(names)}}


PRICES = {"problem": "regression"}
TWO = {"classes": ["paid", "default"]}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "codes for words": (columns(prediction="codes"), "They look like the numbers of the classes"),
    "upper case": (columns(prediction="shout"), "Upper and lower case count"),
    "another language": (columns(prediction="german"), "the model's classes are default, paid"),
    "truth values": (columns(prediction="yes"), "false ("),
    "a class that the model has not": (columns(prediction="three"), "none of the model's classes: pending (23)"),
    "a score without a threshold": (columns(prediction="score"), "They look like probabilities"),
    "per cent with a threshold of one": (columns(prediction="percent", threshold=0.5) | TWO, "which is no probability"),
    "the score of the other class": (columns(prediction="other_score", threshold=0.5), "round.max_skew is 0.3"),
    "classes the other way round": (columns(prediction="swapped"), "in the same unit or order of classes"),
    "answers to other inputs": (columns(prediction="shuffled"), "does it speak of the same inputs"),
    "answers in lists": (columns(prediction="listed"), "a prediction is text, a number or a truth value"),
    "classes that are not the model's": ({"classes": ["yes", "no"]}, "give each name with the model's spelling"),
    "one class too many": ({"classes": ["paid", "default", "late"]}, "the model's own are default, paid"),
    "a price in cents": (PRICES | columns(prediction="cents"), "far from the registered model's answers"),
    "a price with its unit": (PRICES | columns(prediction="euros"), "does not hold numbers"),
    "a score for a price": (PRICES | columns(prediction="score"), "Is it the right column"),
    "a feature in thousands": (fed("age", "income_in_thousands", "amount"), "round.max_skew is 0.3"),
    "features in another order": (fed("income", "age", "amount"), "round.max_skew is 0.3"),
    "decimal commas": (fed("age", "comma", "amount"), "column 'comma' is not a number: '"),
    "a feature in words": (fed("age", "band", "amount"), "column 'band' is not a number: '"),
    "a feature too few": (fed("age", "income"), "name one for each number"),
    "a feature that is gone": (fed("age", "incomes", "amount"), "Did you mean 'income'?"),
    "a feature that is empty": (
        columns() | {"inputs": {"features": ["age", "nothing", "amount"]}},
        "column 'nothing' is empty",
    ),
    "a column that is not there": (columns(prediction="sayd"), "prediction: sayd"),
    "inputs without an id": ({"columns": {"id": "gaps"}}, "an id column must be filled in every row"),
    "a day for a time": (columns(timestamp="day"), "does not hold times"),
    "truth values for times": (columns(timestamp="yes"), "nanoseconds since 1970"),
    "a commit for a version": (columns(model_version="served_by"), "a version is written 3, v3, @alias"),
    "versions of another model": (columns(model_version="of_other"), "a log of several models needs a source"),
    "a class for a number": (PRICES | {"model": "loans"}, "a regression monitor watches one"),
}


@pytest.mark.parametrize("case", WRONG)
def test_check_says_what_is_wrong_and_no_label_is_asked_for(shop: Any, tmp_path: Path, case: str) -> None:
    changes, words = WRONG[case]
    model = shop.prices if changes.get("problem") == "regression" and "model" not in changes else shop.model
    limits = {"min_inputs": ROWS, "max_inputs": ROWS, "max_age": "3650d"}
    given = {"round": limits, "inputs": {}, **columns(), "sampler": {"type": "srs", "budget": 20}, "rules": []}
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    settings = given | changes | {"model": model}
    found = list(check_monitor(Settings.from_mapping(shop.configuration(database, **settings), shop.folder), "wrongs"))
    problems = [finding.message for finding in found if finding.level == "problem"]
    assert any(words in message for message in problems), problems or found
    monitor = shop.monitor(database, **settings)
    monitor.advance()
    with monitor.store.read() as connection:
        assert queue.open_tasks(connection, "wrongs", None) == []
