"""Several classes at once, from what production logged and from models, through labels to the measures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skl2onnx
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier

from opmon.errors import ConfigError, ModelError
from opmon.label_sets import members, text_of
from opmon.stages.compare_measures import require_classes
from opmon.stages.draw import frame_path
from opmon.stages.frames import read_frame
from opmon.store import draws, grouped, queue, revisions, rounds
from opmon.types import Label, ModelVersion
from opmon.types.draw import KIND
from tests.conftest import point_mlflow_at
from tests.outputs import registered

TOPICS = ("delivery", "price", "quality")


def reviews(count: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, which topics there are truly, and what production's model scored."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 3)).astype(np.float32)
    truth = features + rng.normal(scale=0.4, size=features.shape) > 0.3
    scores = 1 / (1 + np.exp(-4 * (features - 0.3)))
    return features, truth, scores


def names(row: np.ndarray) -> list[str]:
    return [name for name, holds in zip(TOPICS, row, strict=True) if holds]


def logged(folder: Path, kind: str) -> dict[str, set[str]]:
    """Write a log that keeps its answers in one of several ways; gives the truth."""
    features, truth, scores = reviews()
    said = scores >= 0.5
    folder.mkdir()
    rows = []
    for k, row in enumerate(features.tolist()):
        answers: dict[str, Any] = {
            "list": {"tags": names(said[k])},
            "text": {"tags": "; ".join(names(said[k]))},
            "json": {"tags": json.dumps(names(said[k]))},
            "object": {"tags": {name: bool(holds) for name, holds in zip(TOPICS, said[k], strict=True)}},
            "places": {"tags": [int(holds) for holds in said[k]]},
            "places in text": {"tags": str(said[k].astype(int))},
            "columns": {f"is_{name}": int(holds) for name, holds in zip(TOPICS, said[k], strict=True)},
            "scores": {"tags": names(said[k]), "scores": scores[k].tolist()},
        }[kind]
        rows.append(json.dumps({"id": f"r{k}", "features": row, **answers}))
    (folder / "log.jsonl").write_text("\n".join(rows) + "\n")
    return {f"r{k}": set(names(row)) for k, row in enumerate(truth)}


def keys(workbench: Any, **changes: Any) -> dict[str, Any]:
    return {
        "problem": "multilabel",
        "classes": list(TOPICS),
        "inputs": {},
        "source": {"path": "reviews"},
        "columns": {"id": "id", "prediction": "tags"},
        "sampler": {"budget": 60},
        "rules": [{"type": "accuracy_level", "threshold": 0.99}],
        **changes,
    }


def answer(workbench: Any, monitor: Any, truth: dict[str, set[str]], by: str = "ann") -> None:
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, workbench.name)
    given = [Label(task.id, by, ";".join(truth[task.input_id]) or "none", monitor.clock()) for task in tasks]
    with monitor.store.write() as connection:
        queue.record(connection, given, monitor.clock())


def closed(workbench: Any, monitor: Any, truth: dict[str, set[str]]) -> Any:
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
    with monitor._at_work() as work:
        frame = read_frame(frame_path(work, round_), predictions=True)
        variables, said = set(frame.variables), list(frame.predictions)  # type: ignore[arg-type]
    for _ in range(2):  # an adaptive sampler draws in two waves
        answer(workbench, monitor, truth)
        assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        return round_, variables, said, revisions.latest_estimate(connection, round_.id)


def expected(truth: dict[str, set[str]], said: list[str]) -> float:
    return float(np.mean([set(members(text)) == truth[f"r{k}"] for k, text in enumerate(said)]))


@pytest.mark.parametrize("kind", ["list", "text", "json", "object", "places", "places in text", "columns", "scores"])
def test_sets_are_logged_in_many_ways(workbench: Any, sqlite: str, tmp_path: Path, kind: str) -> None:
    truth = logged(workbench.folder / "reviews", kind)
    columns: dict[str, Any] = {"id": "id", "prediction": "tags"}
    if kind == "columns":
        columns = {"id": "id", "scores": [f"is_{name}" for name in TOPICS]}
    elif kind == "scores":
        columns["scores"] = "scores"
    monitor = workbench.monitor(
        sqlite, **keys(workbench, model=registered(workbench), scoring={"by": "logged"}, columns=columns)
    )
    round_, variables, said, revision = closed(workbench, monitor, truth)
    _, _, scores = reviews()
    assert said == [text_of(names(row)) for row in scores >= 0.5]
    assert said.count("[]") > 20, "no class at all is an answer"
    assert variables == ({"confidence", "margin", "entropy", "gini"} if kind in ("scores", "columns") else set())
    estimate = revision.estimate
    assert estimate.quantity.name == "subset accuracy"
    assert estimate.low <= expected(truth, said) <= estimate.high
    page = monitor.registry.download(round_.run_id, "round.html", tmp_path / "got").read_text()
    assert "subset accuracy" in page


def test_sets_that_are_mixed_up_are_named_as_people_read_them(workbench: Any, sqlite: str) -> None:
    """Of those that were said to be of a price alone, most have no class at all."""
    truth = logged(workbench.folder / "reviews", "list")
    _, _, scores = reviews()
    alone = [f"r{k}" for k, row in enumerate(scores >= 0.5) if names(row) == ["price"]]
    truth |= {key: set() for key in alone}
    changes = keys(workbench, model=registered(workbench), scoring={"by": "logged"})
    monitor = workbench.monitor(sqlite, **{**changes, "sampler": {"type": "srs", "budget": 200}})
    _, _, _, revision = closed(workbench, monitor, truth)
    with monitor.store.read() as connection:
        groups = grouped.of(connection, [revision.key])[revision.key]
    assert "predicted price, truly none of them" in [group.name for group in groups]


LINEAR = OneVsRestClassifier(LogisticRegression())
NETWORK = MLPClassifier((8,), max_iter=300, random_state=0)
OUTPUTS = MultiOutputClassifier(LogisticRegression())


def test_a_threshold_decides_which_classes_hold_and_one_of_them_is_aimed_at(workbench: Any, sqlite: str) -> None:
    truth = logged(workbench.folder / "reviews", "scores")
    changes = keys(workbench, model=registered(workbench), columns={"id": "id", "scores": "scores"})
    changes |= {"measures": ["subset_accuracy", {"f1": {"class": "price"}}], "main": "f1"}
    changes["sampler"] = {"budget": 100}
    monitor = workbench.monitor(sqlite, **{**changes, "scoring": {"by": "logged", "threshold": 0.8}})
    _, _, said, revision = closed(workbench, monitor, truth)
    _, _, scores = reviews()
    assert said == [text_of(names(row)) for row in scores >= 0.8]
    assert 0 < revision.estimate.low < revision.estimate.value < revision.estimate.high <= 1
    assert revision.estimate.quantity.name == "F1[price]"
    (usual,) = revision.further
    assert usual.estimate.low <= expected(truth, said) <= usual.estimate.high

    with monitor.store.read() as connection:
        draw = draws.unpack_draw(rounds.get(connection, workbench.name, 1).draw)
    assert len(draw.constants["wave_share"]) == 2
    predicted = (scores >= 0.8)[draw.positions, TOPICS.index("price")]
    assert (draw.constants[KIND][draw.columns["stratum"]] == predicted).all()


def test_classes_that_nobody_knows_are_refused_before_a_label_is_asked_for(workbench: Any, sqlite: str) -> None:
    logged(workbench.folder / "reviews", "list")
    changes = keys(workbench, model=registered(workbench), scoring={"by": "logged"}, classes=["delivery", "taste"])
    (problem,) = workbench.monitor(sqlite, **changes).advance().problems
    assert "'price'" in str(problem) or "price (" in str(problem)
    assert "nothing is lost" in str(problem)


def test_two_annotators_count_class_by_class(workbench: Any, sqlite: str) -> None:
    logged(workbench.folder / "reviews", "list")
    changes = keys(workbench, model=registered(workbench), scoring={"by": "logged"}, labels={"overlap": 3})
    changes["sampler"] = {"type": "srs", "budget": 5}
    monitor = workbench.monitor(sqlite, **changes)
    assert monitor.advance().problems == []
    for by, said in (("ann", {"delivery", "price"}), ("ben", {"delivery"}), ("cem", {"quality", "price"})):
        answer(workbench, monitor, {f"r{k}": said for k in range(200)}, by)
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        revision = revisions.latest_estimate(connection, round_.id)
    assert revision is not None
    from opmon.stages.estimate import read_answers

    with monitor.store.read() as connection:
        answers = read_answers(connection, round_)
    assert {task.truth for task in answers.tasks} == {'["delivery", "price"]'}
    version = ModelVersion("reviews", "2", ())
    require_classes(round_, version, answers.tasks)
    with pytest.raises(
        ModelError, match="models:/reviews/2 says classes that the labels of round 1 know nothing of: tas"
    ):
        require_classes(round_, version, [replace(answers.tasks[0], prediction='["price", "taste"]')])


@pytest.mark.parametrize("model", [NETWORK, LINEAR], ids=["network", "linear"])
def test_an_onnx_model_of_several_labels(workbench: Any, sqlite: str, model: Any) -> None:
    features, truth, _ = reviews(600, seed=1)
    model.fit(features, truth.astype(int))
    graph = skl2onnx.to_onnx(model, features[:1], target_opset=17, options={id(model): {"zipmap": False}})
    workbench.register(graph, "topics")
    known = logged(workbench.folder / "reviews", "list")
    changes = keys(workbench, model=workbench.model, inputs={"tensor": "features"}, columns={"id": "id"})
    monitor = workbench.monitor(sqlite, **changes)
    round_, variables, said, revision = closed(workbench, monitor, known)
    own = model.predict(reviews()[0]).astype(bool)
    assert np.mean([set(members(text)) == set(names(row)) for text, row in zip(said, own, strict=True)]) > 0.99
    assert variables == {"confidence", "margin", "entropy", "gini"}
    assert list(round_.classes) == list(TOPICS)
    estimate = revision.estimate
    assert abs(estimate.value - expected(known, said)) < 4 * estimate.standard_error


@pytest.mark.parametrize("model", [OUTPUTS, LINEAR], ids=["outputs", "linear"])
def test_a_model_of_several_labels_by_its_own_flavor(workbench: Any, sqlite: str, model: Any) -> None:
    import mlflow

    features, truth, _ = reviews(400, seed=1)
    model.fit(features, truth.astype(int))
    point_mlflow_at(workbench.tracking_uri)
    experiment = mlflow.MlflowClient().get_experiment_by_name("training").experiment_id
    kept = {"serialization_format": "cloudpickle", "pip_requirements": []}
    with mlflow.start_run(experiment_id=experiment):
        found = mlflow.sklearn.log_model(
            model,
            name="model",
            registered_model_name="flavored-topics",
            **kept,
        )
    known = logged(workbench.folder / "reviews", "list")
    changes = keys(
        workbench,
        model=f"models:/flavored-topics/{found.registered_model_version}",
        inputs={"tensor": "features"},
        scoring={"by": "flavor", "trust": True},
    )
    monitor = workbench.monitor(sqlite, **changes)
    round_, variables, _, revision = closed(workbench, monitor, known)
    assert variables == {"confidence", "margin", "entropy", "gini"}
    assert round_.skew is None or round_.skew < 0.2
    assert revision.estimate.quantity.name == "subset accuracy"


def test_a_scikit_learn_model_of_several_labels_is_converted(workbench: Any, sqlite: str) -> None:
    import mlflow

    features, truth, _ = reviews(400, seed=1)
    LINEAR.fit(features, truth.astype(int))
    point_mlflow_at(workbench.tracking_uri)
    experiment = mlflow.MlflowClient().get_experiment_by_name("training").experiment_id
    signature = mlflow.models.infer_signature(features, LINEAR.predict(features))
    kept = {"serialization_format": "cloudpickle", "pip_requirements": [], "signature": signature}
    with mlflow.start_run(experiment_id=experiment):
        found = mlflow.sklearn.log_model(LINEAR, name="model", registered_model_name="converted-topics", **kept)
    known = logged(workbench.folder / "reviews", "list")
    changes = keys(
        workbench,
        model=f"models:/converted-topics/{found.registered_model_version}",
        inputs={"tensor": "features"},
        convert_sklearn=True,
    )
    monitor = workbench.monitor(sqlite, **changes)
    _, variables, _, revision = closed(workbench, monitor, known)
    assert variables == {"confidence", "margin", "entropy", "gini"}
    assert revision.estimate.quantity.name == "subset accuracy"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns": {"id": "id", "prediction": "tags", "threshold": 0.3}}, "scoring: {threshold: 0.4}"),
        ({"scoring": {"threshold": 1.4}}, "threshold"),
        ({"problem": "classification", "scoring": {"threshold": 0.3}}, "is of problem: multilabel"),
        ({"labels": {"adjudication": "weighted"}}, "of several classes majority"),
        ({"variables": ["dsa"]}, "is of classification only"),
        ({"rules": [{"type": "completeness"}], "unit": "kg"}, "have none: leave it out"),
    ],
)
def test_keys_that_do_not_fit_several_classes(workbench: Any, sqlite: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        workbench.monitor(sqlite, **keys(workbench, **changes))


def test_lists_of_classes_that_arrive_by_themselves_are_a_census(workbench: Any, sqlite: str) -> None:
    truth = logged(workbench.folder / "reviews", "list")
    path = workbench.folder / "reviews" / "log.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for k, row in enumerate(rows):
        own = sorted(truth[row["id"]])
        places = str([int(name in own) for name in TOPICS])
        row["checked"] = (json.dumps(own), "; ".join(own) or "none", places)[k % 3]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    changes = keys(
        workbench,
        model=registered(workbench),
        scoring={"by": "logged"},
        truth={"column": "checked"},
        labels={"annotators": "none"},
        measures=["subset_accuracy", {"f1": {"class": "price"}}],
    )
    monitor = workbench.monitor(sqlite, **changes)
    for _ in range(2):
        assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, rounds.get(connection, workbench.name, 1).id)
    assert revision is not None
    said = [text_of(row["tags"]) for row in rows]
    assert revision.estimate.method == "census"
    assert revision.estimate.value == pytest.approx(expected(truth, said))
    pairs = [("price" in row["tags"], "price" in truth[row["id"]]) for row in rows]
    both, either = sum(a and b for a, b in pairs), sum(a for a, _ in pairs) + sum(b for _, b in pairs)
    (f1,) = revision.further
    assert f1.estimate is not None
    assert f1.estimate.value == pytest.approx(2 * both / either)
