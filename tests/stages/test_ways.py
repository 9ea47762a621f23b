"""Three ways to score give the same round: from ONNX, from what production logged, from the model's own flavor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.checks.monitor import check_monitor
from opmon.config import ColumnSettings, Settings
from opmon.errors import InputError, OpmonError
from opmon.stages.draw import frame_path
from opmon.stages.frames import read_frame
from opmon.stages.payloads import payload_of
from opmon.store import revisions, rounds

FLAVOR = {"by": "flavor", "trust": True}


@pytest.fixture(scope="module")
def digits() -> Any:
    """The model that production runs."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    images, targets = load_digits(return_X_y=True)
    return LogisticRegression(max_iter=200).fit(images[:898], targets[:898])


def logged(path: Path, model: Any) -> np.ndarray:
    """Let production log its answers and scores; gives the answers."""
    table = pq.read_table(path)
    images = np.stack(table["pixels"].to_numpy(zero_copy_only=False))
    scores = model.predict_proba(images)
    said = model.classes_[scores.argmax(axis=1)]
    more = {"said": said, "scores": scores.tolist(), "risk": scores[:, 0], "lag": [None, *range(table.num_rows - 1)]}
    for name, values in more.items():
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, path)
    return said  # type: ignore[no-any-return]


def closed(workbench: Any, monitor: Any) -> Any:
    """A round from its inputs to its estimate, with what its frame held."""
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
    with monitor._at_work() as work:
        frame = read_frame(frame_path(work, round_), predictions=True)
        variables, predictions = set(frame.variables), frame.predictions
    workbench.answer(monitor)
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        return round_, variables, predictions, revisions.latest_estimates(connection, workbench.name)[-1].estimate


def test_what_production_logged_is_judged_and_no_model_is_loaded(
    workbench: Any, database: str, digits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the model was fetched")

    said = logged(workbench.write_window(), digits)
    monitor = workbench.monitor(
        database,
        scoring={"by": "logged"},
        columns={"id": "input_id", "timestamp": "at", "prediction": "said", "scores": "scores"},
        classes=[str(k) for k in range(10)],
        variables={"risk": "risk", "lag": "lag"},
        sampler={"type": "adaptive", "budget": 60},
    )
    monkeypatch.setattr(type(monitor.registry), "fetch_onnx", never)
    round_, variables, predictions, estimate = closed(workbench, monitor)
    assert variables == {"confidence", "margin", "entropy", "gini", "risk", "lag"}
    assert (round_.inputs, round_.skew) == (200, None)
    assert list(predictions) == [str(value) for value in said.tolist()]
    assert estimate.low <= workbench.true_accuracy(monitor, 1) <= estimate.high


def test_scores_are_named_by_class_and_the_classes_are_known_by_it(workbench: Any, sqlite: str, digits: Any) -> None:
    path = workbench.write_window()
    logged(path, digits)
    table = pq.read_table(path)
    scores = np.stack(table["scores"].to_numpy(zero_copy_only=False))
    for place in range(10):
        table = table.append_column(f"p{place}", pa.array(scores[:, place]))
    pq.write_table(table.drop_columns("scores"), path)
    by_class = {str(place): f"p{place}" for place in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)}
    monitor = workbench.monitor(
        sqlite,
        scoring={"by": "logged"},
        columns={"id": "input_id", "timestamp": "at", "prediction": None, "scores": by_class},
        sampler={"type": "adaptive", "budget": 60},
    )
    round_, _, predictions, estimate = closed(workbench, monitor)
    assert (round_.inputs, round_.classes) == (200, list(by_class))
    assert list(predictions) == [str(place) for place in scores.argmax(axis=1).tolist()]
    assert estimate.low <= workbench.true_accuracy(monitor, 1) <= estimate.high


def test_answers_in_other_words_are_refused_before_a_label_is_asked_for(workbench: Any, database: str) -> None:
    workbench.write_window(said=["four"] * 200)
    monitor = workbench.monitor(
        database,
        scoring={"by": "logged"},
        columns={"id": "input_id", "prediction": "said"},
        classes=[str(k) for k in range(10)],
        sampler={"budget": 40},
    )
    (problem,) = monitor.advance().problems
    assert "four (200), 200 of 200; the model's classes are 0, 1, 2" in str(problem)
    assert "nothing is lost" in str(problem)


@pytest.fixture
def flavored(workbench: Any, digits: Any) -> Any:
    """The workbench with the model registered as scikit-learn alone."""
    import mlflow

    from tests.conftest import point_mlflow_at

    point_mlflow_at(workbench.tracking_uri)
    experiment = mlflow.MlflowClient().get_experiment_by_name("training").experiment_id
    with mlflow.start_run(experiment_id=experiment):
        found = mlflow.sklearn.log_model(
            digits, name="model", registered_model_name="plain", serialization_format="cloudpickle", pip_requirements=[]
        )
    workbench.model = f"models:/plain/{found.registered_model_version}"
    return workbench


def test_a_model_answers_by_its_own_flavor_as_by_onnx(flavored: Any, database: str) -> None:
    flavored.write_window()
    monitor = flavored.monitor(database, scoring=FLAVOR)
    round_, variables, _, estimate = closed(flavored, monitor)
    assert variables == {"confidence", "margin", "entropy", "gini"}
    assert round_.inputs == 200
    assert estimate.low <= flavored.true_accuracy(monitor, 1) <= estimate.high


@pytest.mark.parametrize("by", ["logged", "flavor"])
def test_check_tries_every_way(flavored: Any, tmp_path: Path, by: str, digits: Any) -> None:
    logged(flavored.write_window(), digits)
    columns = {"id": "input_id", "prediction": "said"} | ({"scores": "scores"} if by == "logged" else {})
    configuration = flavored.configuration(
        f"sqlite:///{tmp_path / 'opmon.db'}",
        scoring={"by": by, "trust": True},
        columns=columns,
        variables={"risk": {"column": "risk", "suspicious": "low"}},
    )
    settings = Settings.from_mapping(configuration, flavored.folder)
    findings = {finding.about.partition(": ")[2]: finding for finding in check_monitor(settings, flavored.name)}
    assert {finding.level for finding in findings.values()} == {"ok"}, findings
    who = "production logged answers to" if by == "logged" else "the model answered"
    assert findings["trial"].message.startswith(f"{who} 200 of 200 inputs")


def test_a_log_may_hold_everything_inside_one_column(workbench: Any, database: str, digits: Any) -> None:
    """As gateways log it: a struct with the features, and the answer as text with JSON."""
    path = workbench.write_window()
    said = logged(path, digits)
    table = pq.read_table(path)
    request = [{"id": row["input_id"], "pixels": row["pixels"]} for row in table.to_pylist()]
    response = [json.dumps({"answer": {"label": f"D{value}", "id": k}}) for k, value in enumerate(said.tolist())]
    pq.write_table(pa.table({"request": request, "response": response, "at": table["at"]}), path)
    monitor = workbench.monitor(
        database,
        inputs={"tensor": "request.pixels"},
        columns={"id": "request.id", "timestamp": "at", "prediction": "response.answer.label"},
        classes={str(k): f"D{k}" for k in range(10)},
        variables={"lag": "response.answer.id"},
    )
    round_, variables, predictions, _ = closed(workbench, monitor)
    assert (round_.inputs, round_.skew, "lag" in variables) == (200, 0.0, True)
    assert list(predictions) == [str(value) for value in said.tolist()]


def test_versions_that_are_not_run_are_not_compared(workbench: Any, tmp_path: Path) -> None:
    changes = {"scoring": {"by": "logged"}, "columns": {"prediction": "said"}, "sampler": None}
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    with pytest.raises(InputError, match="no version can be asked for answers"):
        monitor.compare("models:/digits/1", "models:/digits/1")


def test_annotators_see_nothing_that_production_said() -> None:
    columns = ColumnSettings(id="request.id", prediction="response.label", scores=("p_a", "p_b"), model_version="v")
    row = {"request": {"id": 1, "age": 3}, "request.id": 1, "response": {"label": "a"}, "response.label": "a"}
    row |= {"p_a": 0.1, "p_b": 0.9, "v": "2", "all": "{}", "responses": 1}
    assert payload_of(row, columns, ("all",)) == {"request": {"id": 1, "age": 3}, "responses": 1}


def test_a_column_that_is_no_number_is_no_variable(workbench: Any, database: str) -> None:
    workbench.write_window(word=["x"] * 200)
    monitor = workbench.monitor(database, variables={"risk": "word"})
    (problem,) = monitor.advance().problems
    assert isinstance(problem, OpmonError)
    assert "column 'word' is string, and a variable is a number" in str(problem)
