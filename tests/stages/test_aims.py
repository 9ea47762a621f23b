"""A monitor whose main measure is a recall, a cost or a mean absolute error draws its inputs by that."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from opmon.cli import group as opmon
from opmon.cli.plan import plan
from opmon.stages.frames import NAME, read_chances, read_frame
from opmon.store import draws, queue, revisions, rounds, tallies
from opmon.types.draw import KIND, PREDICTED, PREDICTED_COUNT

CLASSES = [str(digit) for digit in range(10)]
OF_EIGHT: dict[str, Any] = {
    "classes": CLASSES,
    "measures": ["accuracy", {"recall": {"class": "8"}}],
    "main": "recall",
    "rules": [],
    "sampler": {"budget": 100},
    "round": {"min_inputs": 400, "max_inputs": 400, "max_age": "3650d"},
    "rolling": {"rounds": 2},
}


def labelled(workbench: Any, monitor: Any) -> Any:
    """Another round, drawn in two waves and answered; gives it with its newest estimate."""
    workbench.write_window(400)
    monitor.advance()
    workbench.answer(monitor, wrong=0.1)
    monitor.advance()
    workbench.answer(monitor, wrong=0.1)
    assert (cycle := monitor.advance()).problems == []
    assert cycle.closed == 1
    with monitor.store.read() as connection:
        round_ = rounds.newest(connection, workbench.name, 1)[0]
        return round_, revisions.latest_estimate(connection, round_.id), queue.answers(connection, round_.id)


def unwrapped(asked: tuple[str, ...]) -> str:
    """What ``opmon plan`` tells, in one line."""
    return " ".join(CliRunner().invoke(plan, list(asked)).output.split())


def test_a_monitor_aims_at_the_recall_of_a_class(workbench: Any, database: str, tmp_path: Any) -> None:
    monitor = workbench.monitor(database, **OF_EIGHT)
    round_, revision, tasks = labelled(workbench, monitor)
    draw = draws.unpack_draw(round_.draw)
    assert len(draw) == 100
    assert len(draw.constants["wave_share"]) == 2

    frame = monitor.registry.download(round_.run_id, NAME, tmp_path / "got")
    names, counts = np.unique(read_frame(frame, predictions=True).predictions, return_counts=True)
    told = dict(zip(draw.constants[PREDICTED].tolist(), draw.constants[PREDICTED_COUNT].tolist(), strict=True))
    assert told == dict(zip(names.tolist(), counts.tolist(), strict=True))
    chances, predicted = read_chances(frame), read_frame(frame, predictions=True).predictions
    assert [*chances] == ["8"]
    kinds = draw.constants[KIND][draw.columns["stratum"]]
    of_class = predicted[draw.positions] == "8"
    assert len(set(kinds[of_class])) == 1
    assert set(kinds[of_class]).isdisjoint(kinds[~of_class])
    drawn, usual = chances["8"][draw.positions], chances["8"]
    assert np.sqrt(drawn * (1 - drawn)).mean() > 1.4 * np.sqrt(usual * (1 - usual)).mean()

    assert revision.estimate.quantity.name == "recall[8]"
    assert revision.estimate.method == "adaptive/ratio by parts"
    of_task = {task.position: task.scores for task in tasks}
    assert all(own is not None and own[8] == chances["8"][at] and np.isnan(own[0]) for at, own in of_task.items())

    asked = ("-c", str(workbench.write_yaml(database, **OF_EIGHT)), "--half-width", "0.12")
    told = CliRunner().invoke(plan, [*asked, "--json"]).output
    planned = json.loads(told)
    assert planned["quantity"] == "recall[8]"
    assert 100 < planned["budget"] <= 400
    assert planned["plain_budget"] <= 400
    assert "aims at recall[8]" in planned["reasons"][0]
    assert "points over 400 inputs, if the recall[8] is about" in unwrapped(asked)

    report = CliRunner().invoke(opmon, ["report", *asked[:2], "--since", "2026-03-01", "--json"])
    labels = json.loads(report.output)["labels"]
    assert labels["left_out"] == {}
    assert (labels["rounds"], labels["taken"]) == (1, 100)
    of_plan = json.loads(CliRunner().invoke(plan, [*asked[:3], str(revision.estimate.half_width), "--json"]).output)
    assert labels["plain"] == of_plan["plain_budget"], "recall, and not accuracy, says what was saved"

    again, revision, _ = labelled(workbench, monitor)
    assert again.number == 2
    timeline = monitor.registry._client.get_metric_history(again.timeline_run_id, "recall_8/rolling")
    both = [point.value for point in timeline]
    assert len(both) == 2
    assert 0 <= both[-1] <= 1
    assert both[-1] != pytest.approx(revision.estimate.value)


def test_a_sampler_that_cannot_aim_draws_as_ever(workbench: Any, tmp_path: Any) -> None:
    changes = OF_EIGHT | {"sampler": {"type": "ssrs", "budget": 100}, "round": {"min_inputs": 200, "max_inputs": 200}}
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    workbench.write_window(200)
    monitor.advance()
    with monitor.store.read() as connection:
        round_ = rounds.newest(connection, workbench.name, 1)[0]
    config = workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    refused = CliRunner().invoke(plan, ["-c", str(config), "--inputs", "5000"]).exception
    assert "depend on how rare its inputs are" in str(refused)
    assert KIND not in draws.unpack_draw(round_.draw).constants
    assert [*read_chances(monitor.registry.download(round_.run_id, NAME, tmp_path / "got"))] == []


def test_a_measure_of_scores_is_aimed_at_and_planned_for(workbench: Any, tmp_path: Any) -> None:
    dear = {name: {other: 50.0 if name == "8" else 1.0 for other in CLASSES if other != name} for name in CLASSES}
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    changes = OF_EIGHT | {"measures": [{"cost": {"matrix": dear, "unit": "EUR"}}, "log_loss"], "main": "log_loss"}
    monitor = workbench.monitor(database, **changes)
    round_, revision, tasks = labelled(workbench, monitor)
    frame = monitor.registry.download(round_.run_id, NAME, tmp_path / "got")
    chances = read_chances(frame)
    assert [*chances] == CLASSES
    assert KIND in draws.unpack_draw(round_.draw).constants
    for task in tasks:
        assert task.scores == pytest.approx([chances[name][task.position] for name in CLASSES], abs=1e-5)
    assert revision.estimate.quantity.name == "log loss"
    assert revision.estimate.low <= revision.estimate.value <= revision.estimate.high

    config, wanted = workbench.write_yaml(database, **changes), 0.7 * revision.estimate.half_width
    asked = ("-c", str(config), "--half-width", f"{wanted:.4f}")
    planned = json.loads(CliRunner().invoke(plan, [*asked, "--json"]).output)
    assert 100 < planned["budget"] < 400
    assert planned["half_width"] <= wanted
    with monitor.store.read() as connection:
        gain = tallies.read(connection, [revision.key])[revision.key].gain
    assert (planned["plain_budget"] > planned["budget"]) == (gain < 1)
    assert "aims at log loss" in planned["reasons"][0]
    assert "log loss is about" in unwrapped(asked)


def test_no_label_is_asked_for_a_class_that_the_model_does_not_have(workbench: Any, database: str) -> None:
    """The round can be begun anew once the measures are right."""
    named = {key: value for key, value in OF_EIGHT.items() if key != "classes"}
    wrong = named | {"measures": [{"recall": {"class": "eight"}}]}
    workbench.write_window(400)
    monitor = workbench.monitor(database, **wrong)
    (problem,) = monitor.advance().problems
    assert "there is no class 'eight'" in str(problem)
    with monitor.store.read() as connection:
        (stopped,) = rounds.newest(connection, workbench.name, 1)
        assert queue.answers(connection, stopped.id) == []
    monitor = workbench.monitor(database, **named)
    monitor.abandon(stopped.number, "measures")
    monitor.reopen(stopped.number)
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        (again,) = rounds.newest(connection, workbench.name, 1)
        assert queue.answers(connection, again.id) != []
