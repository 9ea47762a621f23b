"""Rounds that several annotators labelled: whose answer counts, and the estimate corrected for their errors."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mlflow
import pyarrow.parquet as pq
import pytest

from opmon.adjudication import Asked
from opmon.errors import ConfigError
from opmon.labels.queue import Answer, LabelQueue
from opmon.queries.annotators import team_view
from opmon.stages.correction import told
from opmon.stages.estimate import read_answers
from opmon.store import queue, revisions, rounds
from opmon.store.corrections import SETTLED, Corrected
from opmon.store.revisions import Revision
from opmon.types import Estimate, Label
from tests.cli.test_commands import opmon

AT = datetime(2026, 3, 2, tzinfo=UTC)
ERRORS = {"ann": 0.04, "ben": 0.08}


def said(workbench: Any, monitor: Any, errors: dict[str, float], *, only: Sequence[str] = ()) -> None:
    """Every annotator answers all open tasks, always in the same way; wrong answers are the next class."""
    given = []
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, workbench.name)
    for name, error in errors.items():
        for task in tasks:
            given.append(Label(task.id, name, _answer(workbench, name, task.input_id, error), AT, seconds=2.0))
    with monitor.store.write() as connection:
        queue.record(connection, given, AT)


def _answer(workbench: Any, name: str, input_id: str, error: float) -> str:
    """What somebody says of an input, always the same; what is wrong is the next class."""
    wrong = zlib.crc32(f"{name} {input_id}".encode()) / 2**32 < error
    return str((int(workbench.truth[input_id]) + wrong) % 10)


def labelled(workbench: Any, tmp_path: Path, errors: dict[str, float], **labels: Any) -> tuple[Any, Revision]:
    """A round labelled by some, and its newest estimate."""
    monitor = workbench.monitor(
        f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "srs", "budget": 120}, labels=labels
    )
    workbench.write_window()
    assert monitor.advance().problems == []
    said(workbench, monitor, errors)
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        found = revisions.latest_estimates(connection, workbench.name)[-1]
    return monitor, found


def test_a_round_that_two_labelled_has_a_corrected_estimate_everywhere(workbench: Any, tmp_path: Path) -> None:
    """In the database, in MLflow under keys of its own, in the notes, the report and opmon status; nothing else moves:
    the plain estimate is that of the majority's answers."""
    monitor, found = labelled(workbench, tmp_path, ERRORS)
    corrected, plain = found.corrected, found.estimate
    assert corrected is not None
    assert corrected.interval is not None
    value, low, high = corrected.interval
    assert low <= workbench.true_accuracy(monitor, 1) <= high
    assert value > plain.value  # they err, and the model was blamed
    assert corrected.checks == 120
    assert corrected.agreement is not None
    assert 0.8 < corrected.agreement < 0.95
    assert plain.notes[-1] == (
        f"corrected for annotators who err, from 120 checked answers: {plain.quantity.interval(value, low, high)}"
    )
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
    mlflow.set_tracking_uri(workbench.tracking_uri)
    for run in (round_.run_id, round_.timeline_run_id):
        metrics = mlflow.get_run(run).data.metrics
        assert metrics["accuracy/estimate"] == pytest.approx(plain.value)
        assert metrics["accuracy/corrected"] == pytest.approx(value)
        assert (metrics["accuracy/corrected_low"], metrics["accuracy/corrected_high"]) == pytest.approx((low, high))
        assert metrics["labels/agreement"] == pytest.approx(corrected.agreement)
    report = monitor.registry.download(round_.run_id, "round.html", tmp_path / "page").read_text()
    assert "Corrected for annotators who err" in report
    written = json.loads(monitor.registry.download(round_.run_id, "estimate.json", tmp_path / "told").read_text())
    assert written["corrected"]["value"] == pytest.approx(value)


def test_what_nobody_checks_is_as_it_was(workbench: Any, tmp_path: Path) -> None:
    monitor, found = labelled(workbench, tmp_path, {"ann": 0.04})
    assert found.corrected is None
    assert not any("corrected" in note for note in found.estimate.notes)
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
    mlflow.set_tracking_uri(workbench.tracking_uri)
    metrics = mlflow.get_run(round_.timeline_run_id).data.metrics
    assert not [key for key in metrics if "corrected" in key or "agreement" in key]


def test_status_and_the_table_of_annotators_tell_of_it(workbench: Any, tmp_path: Path) -> None:
    _, found = labelled(workbench, tmp_path, ERRORS | {"cem": 0.4})
    config = str(workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}"))
    status = json.loads(opmon("status", "-c", config, "--json")[1])
    assert found.corrected is not None
    assert status["latest"]["corrected"]["value"] == pytest.approx(found.corrected.value)
    assert "round 1, corrected for annotators who err: " in opmon("status", "-c", config)[1]
    code, out, _ = opmon("labels", "annotators", "-c", config, "--json")
    assert code == 0
    team = json.loads(out)
    ann, ben, cem = team["annotators"]
    assert (ann["annotator"], ann["answers"], ann["skips"], ann["seconds"]) == ("ann", 120, 0, 2.0)
    assert ann["error"]["low"] < ERRORS["ann"] < ann["error"]["high"]
    assert ben["error"]["low"] < ERRORS["ben"] < ben["error"]["high"]
    assert cem["error"]["low"] > ben["error"]["high"]
    assert team["inputs"] == 120
    assert team["needs"][0].startswith("cem errs on ")
    code, out, _ = opmon("labels", "annotators", workbench.name, "-c", config)
    assert code == 0
    assert "Krippendorff's alpha" in out
    assert "cem errs on " in out.replace("\n", " ")


def test_the_named_one_decides(workbench: Any, tmp_path: Path) -> None:
    """Of two who differ the latest counts, unless an expert is named."""
    monitor, _ = labelled(workbench, tmp_path, {"ann": 0.0, "ben": 0.3}, adjudication={"expert": "ann"})
    with monitor.store.read() as connection:
        answers = read_answers(connection, rounds.get(connection, workbench.name, 1))
    assert all(task.truth == workbench.truth[task.input_id] for task in answers.tasks)
    assert any(task.agreement == 0.5 for task in answers.tasks)
    run = rounds_run(monitor, workbench.name)
    table = pq.read_table(monitor.registry.download(run, "labels.parquet", tmp_path / "labels"))
    assert table["truth"].to_pylist() == [workbench.truth[key] for key in table["input_id"].to_pylist()]


def test_the_likeliest_answer_counts(workbench: Any, tmp_path: Path) -> None:
    """Weighted by the error model, fewer wrong answers count than by majority, where the last of two counts."""
    monitor, _ = labelled(workbench, tmp_path, {"ann": 0.02, "ben": 0.3}, adjudication="weighted")
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        answers, plain = read_answers(connection, round_), queue.answers(connection, round_.id)
    wrong = [sum(task.truth != workbench.truth[task.input_id] for task in some) for some in (answers.tasks, plain)]
    assert wrong[0] < wrong[1] / 2


def rounds_run(monitor: Any, name: str) -> str:
    with monitor.store.read() as connection:
        return str(rounds.get(connection, name, 1).run_id)


def test_what_was_learned_before_corrects_single_answers(workbench: Any, tmp_path: Path) -> None:
    """Rounds that asked two tell how often annotators err; the next one, which asks one, is corrected by it."""
    monitor, first = labelled(workbench, tmp_path, ERRORS)
    assert first.corrected is not None
    with monitor.store.write() as connection:  # as a queue with overlap: 2 would have asked
        connection.exec_driver_sql("UPDATE tasks SET needs = 2")
    workbench.write_window()
    assert monitor.advance().problems == []
    said(workbench, monitor, {"ben": ERRORS["ben"]})
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        second = revisions.latest_estimates(connection, workbench.name)[-1]
    assert second.round_number == 2
    assert second.corrected is not None
    assert second.corrected.interval is not None
    assert second.corrected.agreement is None
    assert second.corrected.value is not None
    assert second.corrected.value > second.estimate.value
    _, low, high = second.corrected.interval
    assert low <= workbench.true_accuracy(monitor, 2) <= high


def test_second_opinions_of_failures_mend_the_plain_estimate_too(workbench: Any, tmp_path: Path) -> None:
    """Three people work through the queue: apparent failures are confirmed, and what is left is corrected."""
    labels = {"overlap": {"answers": 2, "of": "failures"}}
    monitor = workbench.monitor(
        f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "srs", "budget": 120}, labels=labels
    )
    workbench.write_window()
    assert monitor.advance().problems == []
    desk = LabelQueue(monitor.store, {}, monitor.clock)
    team = ("ann", "ben", "cem")
    while sum(_work(desk, workbench, name) for name in team):
        pass
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        found = revisions.latest_estimates(connection, workbench.name)[-1]
        answers = read_answers(connection, rounds.get(connection, workbench.name, 1))
    assert answers.settled
    seldom = [task for task in answers.tasks if len(task.answered) == 1]
    assert all(task.truth == task.prediction for task in seldom)
    assert len(seldom) > 80
    assert found.corrected is not None
    assert found.corrected.interval is not None
    truth = workbench.true_accuracy(monitor, 1)
    once = sum(next(iter(task.answered.values())) == task.prediction for task in answers.tasks) / 120
    assert abs(found.estimate.value - truth) < abs(once - truth)  # as if nobody had been asked again
    _, low, high = found.corrected.interval
    assert low <= truth <= high


def _work(desk: LabelQueue, workbench: Any, name: str) -> int:
    """Somebody takes some tasks and answers them, a tenth of them wrongly; gives how many those were."""
    taken = desk.take(name, workbench.name, 10).tasks
    desk.answer(name, [Answer(task.key, _answer(workbench, name, task.input_id, 0.1)) for task in taken])
    return len(taken)


def test_gold_tasks_correct_single_answers(workbench: Any, tmp_path: Path) -> None:
    """Sixty inputs of known truth lie among the tasks; they are in no count of the round, and tell of its annotator."""
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "srs", "budget": 120})
    workbench.write_window()
    assert monitor.advance().problems == []
    gold = [Asked(-1 - k, f"gold-{k}", "", {}, {"pixels": []}, gold=str(k % 10)) for k in range(60)]
    workbench.truth |= {task.input_id: task.gold or "" for task in gold}
    with monitor.store.write() as connection:
        queue.queue(connection, workbench.name, rounds.get(connection, workbench.name, 1).id, 0, gold, AT)
    said(workbench, monitor, {"ann": 0.15})
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        found = revisions.latest_estimates(connection, workbench.name)[-1]
        (ann,) = team_view(connection, workbench.name, 20).annotators
    assert found.estimate.n == 120
    assert found.corrected is not None
    assert found.corrected.interval is not None
    assert found.corrected.checks == 60
    value, low, high = found.corrected.interval
    assert low <= workbench.true_accuracy(monitor, 1) <= high
    assert value > found.estimate.value + 0.05
    assert (ann.answers, ann.gold) == (180, 60)
    assert ann.error is not None
    assert ann.error.low < 0.15 < ann.error.high
    assert 1 - ann.gold_right / 60 == pytest.approx(ann.error.error, abs=0.03)


def test_a_skip_and_a_name_without_answers_are_told(workbench: Any, tmp_path: Path) -> None:
    monitor, _ = labelled(workbench, tmp_path, {"ann": 0.0})
    with monitor.store.write() as connection:
        task = queue.answers(connection, rounds.get(connection, workbench.name, 1).id)[0]
        queue.record(connection, [Label(task.task_id or 0, "zoe", None, AT)], AT)
    with monitor.store.read() as connection:
        team = team_view(connection, workbench.name, 20)
        other = team_view(connection, "nobody", 20)
    assert [(view.annotator, view.answers, view.skips) for view in team.annotators] == [("ann", 120, 0), ("zoe", 0, 1)]
    assert all(view.error is None for view in team.annotators)
    assert other.annotators == ()


def test_weights_are_refused_of_numbers(workbench: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="weighted is for single classes"):
        workbench.monitor(
            f"sqlite:///{tmp_path / 'opmon.db'}",
            problem="regression",
            rules=[],
            sampler={"type": "srs", "budget": 40},
            labels={"adjudication": "weighted"},
        )


def test_a_correction_that_moves_nothing_that_is_shown_is_told_as_such() -> None:
    plain = Estimate(0.74, 0.6604, 0.8021, n=150, frame_size=1500, response=0.98, method="two_stage")
    same = Corrected(0.74003, 0.66036, 0.80212, 0.036, "", 152, 0.977, 0.97)
    assert told(plain, same).notes == (f"corrected for annotators who err, from 152 checked answers: {SETTLED}",)
    assert told(plain, replace(same, low=0.655)).notes[0].endswith("74.0 % [65.5 %, 80.2 %]")
