"""A regression from its log to MLflow: told by its mean squared error, in its unit, and nowhere as an accuracy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skl2onnx
from click.testing import CliRunner
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from opmon.cli import group
from opmon.config import Settings
from opmon.errors import ConfigError, InputError
from opmon.kept_quantities import kept
from opmon.quantities import mean_squared_error
from opmon.queries.expected import ExpectedView
from opmon.queries.rolling import rolling_as_of
from opmon.store import outbox, queue, revisions, rounds, verdicts
from opmon.types import Label

CHANGES: dict[str, Any] = {
    "problem": "regression",
    "unit": "days",
    "sampler": {"type": "srs", "budget": 40},
    "rules": [{"type": "completeness"}],
}


@pytest.fixture
def watched(workbench: Any) -> Any:
    images, targets = workbench.images.astype(np.float32), workbench.targets.astype(np.float32)
    kind = skl2onnx.common.data_types.FloatTensorType([None, 64])
    model = skl2onnx.to_onnx(
        LinearRegression().fit(images[:900], targets[:900]), initial_types=[("pixels", kind)], target_opset=17
    )
    workbench.register(model, "days")
    return workbench


def test_the_noise_of_two_who_measure_is_taken_from_the_error(watched: Any, tmp_path: Path) -> None:
    """Both are off by a day or two, one way or the other: the model is blamed for it in the plain error alone."""
    monitor = watched.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **CHANGES)
    watched.write_window()
    monitor.advance()
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, watched.name)
    rng = np.random.default_rng(0)
    given = [
        Label(task.id, name, str(float(watched.truth[task.input_id]) + rng.normal(scale=2.0)), monitor.clock())
        for name in ("ann", "ben")
        for task in tasks
    ]
    with monitor.store.write() as connection:
        queue.record(connection, given, monitor.clock())
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, rounds.get(connection, watched.name, 1).id)
    assert revision is not None
    assert revision.corrected is not None
    assert revision.corrected.value is not None
    assert revision.corrected.agreement is None
    assert revision.estimate.value - revision.corrected.value == pytest.approx(4.0, rel=0.5)
    assert revision.estimate.notes[-1].startswith("corrected for annotators who err, from 40 ")
    assert "days²" in revision.estimate.notes[-1]


def asked(*arguments: str) -> str:
    return CliRunner().invoke(group, list(arguments), standalone_mode=False, catch_exceptions=False).output


def test_a_regression_is_told_by_its_error_and_unit(watched: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    config = str(watched.write_yaml(database, **CHANGES))
    monitor = watched.monitor(database, **CHANGES)
    watched.write_window()
    monitor.advance()
    watched.answer(monitor)
    assert (cycle := monitor.advance()).problems == []
    assert cycle.closed == 1

    with monitor.store.read() as connection:
        round_ = rounds.get(connection, watched.name, 1)
        revision = revisions.latest_estimate(connection, round_.id)
    assert revision is not None
    estimate = revision.estimate
    assert estimate.quantity == mean_squared_error("days")
    assert 0 < estimate.low < estimate.value < estimate.high

    keys = set(monitor.registry._client.get_run(round_.timeline_run_id).data.metrics)
    assert {"mean_squared_error/estimate", "mean_squared_error/low", "mean_squared_error/high"} <= keys
    assert not [key for key in keys if "accuracy" in key or "failures" in key]
    tags = monitor.registry.version_tags(monitor.registry.resolve(watched.model))
    assert float(tags["opmon.mean_squared_error"]) == pytest.approx(estimate.value, rel=1e-4)
    assert "opmon.accuracy" not in tags
    page = monitor.registry.download(round_.run_id, "round.html", tmp_path / "got").read_text()
    assert "mean squared error (days²)" in page
    assert "Largest errors" in page
    assert "ccuracy" not in page

    assert "failure" not in re.sub(r"failures[./]\w+", "", page).lower()
    note = monitor.registry._client.get_run(round_.run_id).data.tags["mlflow.note.content"]
    assert "`failures/failures.parquet` its largest errors" in note
    assert "failure" not in asked("report", "-c", config, "-o", "-").partition("</style>")[2].lower()
    assert "failure" not in asked("rounds", "show", "1", "-c", config).lower()
    told = asked("status", "-c", config)
    assert "failure" not in told.lower()
    assert f"mean squared error {estimate.quantity.interval(estimate.value, estimate.low, estimate.high)}" in told
    assert "accuracy" not in told
    planned = asked("plan", "-c", config)
    assert " days² over 200 inputs, if the mean squared error is about " in planned
    assert json.loads(asked("plan", "-c", config, "--json"))["quantity"] == "mean squared error"


def test_a_forecaster_is_watched_by_the_mean_absolute_error_in_days(
    watched: Any, database: str, tmp_path: Path
) -> None:
    """An alarm is when it rises; the others are told beside it, from the same labels."""
    changes = {
        **CHANGES,
        "measures": ["mean_absolute_error", "bias", "r_squared", {"within_tolerance": {"tolerance": 1.0}}],
        "main": "MAE",
        "rules": [
            {"type": "measure_worse", "threshold": 0.5},
            {"type": "measure_level", "threshold": 8.0, "name": "never-so-far"},
            {"type": "measure_worse", "threshold": 5.0, "of": "bias", "name": "bias"},
            {"type": "measure_worse", "threshold": 0.01, "of": "within_tolerance", "name": "within"},
            {"type": "measure_worse", "threshold": 0.99, "of": "within_tolerance", "name": "hardly-within"},
        ],
    }
    config = str(watched.write_yaml(database, **changes))
    monitor = watched.monitor(database, **changes)
    watched.write_window()
    monitor.advance()
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, watched.name)
    with monitor.store.write() as connection:
        given = [Label(task.id, "ann", watched.truth[task.input_id], monitor.clock()) for task in tasks]
        queue.record(connection, given, monitor.clock())
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, watched.name, 1)
        revision = revisions.latest_estimate(connection, round_.id)
        drawn = queue.answers(connection, round_.id)
        said = {verdict.rule: verdict for verdict in verdicts.latest_verdicts(connection, round_.id)}
    assert revision is not None
    estimate, errors = revision.estimate, [abs(float(each.truth or 0) - float(each.prediction)) for each in drawn]
    assert estimate.quantity.title == "MAE (days)"
    assert estimate.value == pytest.approx(np.mean(errors))
    assert 0 < estimate.low < estimate.value < estimate.high
    assert {rule: verdict.state for rule, verdict in said.items()} == {
        "measure-worse": "alarm",
        "never-so-far": "ok",
        "bias": "ok",
        "within": "ok",
        "hardly-within": "alarm",
    }
    assert said["within"].message.startswith("share within 1 day ")
    assert "days above the line of 0.5 days" in said["measure-worse"].message
    assert "8 days or better" in said["never-so-far"].message
    found = {each.quantity.title: each.estimate for each in revision.further}
    within = next(one for name, one in found.items() if one is not None and "within" in name)
    assert within is not None
    assert within.value == pytest.approx(np.mean(np.array(errors) <= 1.0))
    metrics = monitor.registry._client.get_run(round_.timeline_run_id).data.metrics
    assert metrics["MAE/estimate"] == estimate.value
    assert "measure/R2_low" in metrics or "measure/R²_low" in metrics
    assert not [key for key in metrics if "squared_error" in key or "failures" in key]
    page = monitor.registry.download(round_.run_id, "round.html", tmp_path / "got").read_text()
    assert "Largest errors" in page
    assert f"MAE {estimate.quantity.interval(estimate.value, estimate.low, estimate.high)}" in asked(
        "status", "-c", config
    )
    with monitor.store.read() as connection:
        events = {event["rule"]: event["body"]["estimate"] for event in outbox.listing(connection, watched.name, 10)}
    assert {rule: (of["quantity"], of["unit"]) for rule, of in events.items()} == {
        "measure-worse": ("MAE", "days"),
        "hardly-within": ("share within 1 day", ""),
    }
    assert events["hardly-within"]["value"] == within.value
    assert kept(events["hardly-within"]) == within.quantity, "with all that its name does not tell"


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "accuracy_level", "threshold": 0.9},
        {"type": "accuracy_below", "threshold": 0.9},
        {"type": "accuracy_drop", "drop": 0.1},
        {"type": "accuracy_slices", "threshold": 0.9},
        {"type": "accuracy_behind", "rival": "models:/m/1"},
    ],
    ids=lambda rule: rule["type"],
)
def test_rules_on_the_accuracy_are_refused_when_read(rule: dict[str, Any]) -> None:
    monitor = {"model": "models:/m/1", "source": {"path": "in/"}, **CHANGES, "rules": [rule]}
    with pytest.raises(ConfigError, match=r"mean squared error.*completeness, drift_level, .*robustness_level") as told:
        Settings.from_mapping({"monitors": {"m": monitor}}, "/watch")
    assert rule["type"] in str(told.value)


def test_every_program_can_read_the_files_of_a_round_whose_interval_has_no_end(watched: Any, tmp_path: Path) -> None:
    changes = {
        **CHANGES,
        "sampler": {"type": "srs", "budget": 1},
        "rules": [{"type": "measure_worse", "threshold": 5.0}],
        "measures": ["mean_absolute_error"],
        "slices": [{"prediction": [3, 6]}],
        "drift": {"enabled": True},
    }
    monitor = watched.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    watched.live(monitor, 2)
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, watched.name, 2)
    files = [name for name in monitor.registry.files(round_.run_id) if name.endswith(".json")]
    texts = {name: monitor.registry.download(round_.run_id, name, tmp_path / name).read_text() for name in files}
    read = {name: json.loads(text, parse_constant=str) for name, text in texts.items()}
    assert {"estimate.json", "verdicts.json", "measures.json", "drift.json"} <= set(files)
    assert not [name for name, told in read.items() if "Infinity" in str(told) or "NaN" in str(told)]
    assert read["estimate.json"]["high"] is None
    assert read["verdicts.json"][0]["details"]["high"] is None


def test_classes_have_no_unit() -> None:
    monitor = {"model": "models:/m/1", "source": {"path": "in/"}, "sampler": {"type": "srs"}, "unit": "days"}
    with pytest.raises(ConfigError, match=r"unit.*classes and scores have none"):
        Settings.from_mapping({"monitors": {"m": monitor}}, "/watch")


def test_versions_of_a_regression_are_compared_by_their_errors(watched: Any, tmp_path: Path) -> None:
    """Version 2 saw forty digits, version 1 nine hundred; the same labels tell by how many days² it is farther off."""
    images, targets = watched.images.astype(np.float32), watched.targets.astype(np.float32)
    name = watched.model.removeprefix("models:/").partition("/")[0].partition("@")[0]
    kind = skl2onnx.common.data_types.FloatTensorType([None, 64])
    worse = LinearRegression().fit(images[:40], targets[:40])
    first = watched.model
    watched.register(skl2onnx.to_onnx(worse, initial_types=[("pixels", kind)], target_opset=17), name)
    second = watched.model
    watched.model = first
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    changes = {
        **CHANGES,
        "measures": ["bias", {"within_tolerance": {"tolerance": 2}}],
        "sampler": {"type": "srs", "budget": 80},
    }
    config = str(watched.write_yaml(database, **changes))
    monitor = watched.monitor(database, **changes)
    watched.write_window()
    monitor.advance()
    watched.answer(monitor)
    assert monitor.advance().problems == []
    with pytest.raises(InputError, match=r"told by its mean squared error: compare_measures compares them by that"):
        monitor.compare(first, second)
    (found,) = monitor.compare_measures(first, second)
    assert found.quantity.unit == "days²"
    assert (found.winner, found.labels, found.rounds) == ("first", 80, 1)
    assert 0 < found.low < found.difference < found.high
    told = asked("compare", first, second, "--measure", "bias", "--measure", "within_tolerance", "-c", config)
    assert "The bias of" in told
    assert "in its distance from 0" in told
    assert "The share within 2 days of" in told
    assert "points (95 % interval" in told
    shown = json.loads(asked("compare", first, second, "-c", config, "--json"))["measures"]
    assert shown[0]["words"] == found.words(first, second)
    assert shown[0]["winner"] == "first"
    with pytest.raises(InputError, match="'f1' is none of the measures"):
        monitor.compare_measures(first, second, ["f1"])


def test_a_network_of_a_regression_has_a_reference(watched: Any, tmp_path: Path) -> None:
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=5, random_state=0).fit(watched.images, watched.targets)
    kind = skl2onnx.common.data_types.FloatTensorType([None, 64])
    watched.register(skl2onnx.to_onnx(network, initial_types=[("pixels", kind)], target_opset=17), "layered-days")
    config = str(watched.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", **CHANGES))
    path = watched.write_window(days=watched.targets[:200].astype(float))
    told = json.loads(asked("reference", str(path), "--label", "days", "--config", config, "--json"))
    assert "accuracy" not in told
    assert told["mean_squared_error"] > 0


def test_the_error_that_is_expected_stands_on_labels_of_rounds_before(watched: Any, tmp_path: Path) -> None:
    """Scores say nothing of it: of the first round nothing is told, with the reason; then it is, in its unit."""
    monitor = watched.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **CHANGES)
    watched.live(monitor, 2)
    with monitor.store.read() as connection:
        first, second = (rounds.get(connection, watched.name, number) for number in (1, 2))
        found = ExpectedView.of(second)
        estimate = revisions.latest_estimates(connection, watched.name)[0].estimate
    assert first.expected is not None
    assert "scores alone say nothing of its mean squared error" in first.expected["why"]
    assert found is not None
    assert found.name == "expected mean squared error"
    assert found.text.split(" [")[0].endswith("days²")
    assert found.low <= estimate.value <= found.high


def test_a_root_mean_squared_error_is_never_told_as_its_square(watched: Any, tmp_path: Path) -> None:
    """Of the last rounds together the interval is of days too, and nothing is expected that would be days²."""
    changes = {**CHANGES, "measures": ["root_mean_squared_error"], "main": "RMSE"}
    monitor = watched.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    watched.live(monitor, 2)
    with monitor.store.read() as connection:
        first, second = (each.estimate for each in reversed(revisions.latest_estimates(connection, watched.name)))
        point = rolling_as_of(
            connection, watched.name, revisions.latest_estimates(connection, watched.name)[0], rounds=2, within=None
        )
        newest = revisions.latest_estimates(connection, watched.name)[1]
        both = rolling_as_of(connection, watched.name, newest, rounds=2, within=None)
        expected = rounds.get(connection, watched.name, 2).expected
    assert both is not None
    assert both.estimate.value == pytest.approx(((first.value**2 + second.value**2) / 2) ** 0.5), "of all inputs"
    assert both.estimate.half_width < max(first.half_width, second.half_width)
    assert point is not None
    assert min(first.low, second.low) <= point.estimate.low < point.estimate.value
    assert point.estimate.value < point.estimate.high <= max(first.high, second.high)
    assert expected is not None
    assert "the RMSE is no mean over all inputs" in expected["why"]
