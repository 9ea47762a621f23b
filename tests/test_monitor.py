"""The whole cycle, on real MLflow, ONNX Runtime, SQLite and PostgreSQL."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.errors import LeaseHeld
from opmon.store import outbox, queue, revisions, rounds, schema
from opmon.store.leases import hold


def only_round(monitor: Any, name: str, number: int = 1) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, name, number)


def timeline(monitor: Any, name: str, key: str) -> list[float]:
    run = only_round(monitor, name).timeline_run_id
    return [value for _, _, value in monitor.registry.metric_history(run, key)]


def test_a_round_from_inputs_to_mlflow(workbench: Any, database: str, tmp_path: Path) -> None:
    monitor = workbench.monitor(database)
    assert monitor.advance().opened == 0, "nothing was logged yet"
    workbench.write_window()
    cycle = monitor.advance()
    assert (cycle.opened, cycle.waiting, cycle.problems) == (1, 1, [])
    assert workbench.answer(monitor) > 10
    assert monitor.advance().closed == 1

    round_ = only_round(monitor, workbench.name)
    assert (round_.state, round_.inputs, round_.problem) == ("closed", 200, None)
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, round_.id)
    assert revision is not None
    estimate = revision.estimate
    assert estimate.low <= workbench.true_accuracy(monitor, 1) <= estimate.high
    assert timeline(monitor, workbench.name, "accuracy/estimate") == [pytest.approx(estimate.value)]
    for artifact in ("frame.parquet", "draw.npz", "estimate.json", "round.html", "labels.parquet", "failures"):
        assert monitor.registry.download(round_.run_id, artifact, tmp_path / "got").exists()
    tags = monitor.registry.version_tags(monitor.registry.resolve(workbench.model))
    assert tags["opmon.status"] in ("healthy", "degraded")


def test_a_half_labelled_round_is_provisional(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, limit=8)
    monitor.advance()
    assert only_round(monitor, workbench.name).state == "labelling"
    assert len(timeline(monitor, workbench.name, "accuracy/provisional")) == 1
    monitor.advance()
    assert len(timeline(monitor, workbench.name, "accuracy/provisional")) == 1, "nothing new was said"
    workbench.answer(monitor)
    monitor.advance()
    assert only_round(monitor, workbench.name).state == "closed"


def test_the_deadline_ends_the_wait(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock, labels={"max_wait": "2d"})
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, limit=8)
    clock.pass_(days=3)
    monitor.advance()
    round_ = only_round(monitor, workbench.name)
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, round_.id)
    assert round_.state == "closed"
    assert revision is not None
    assert revision.estimate.response < 1
    assert not revision.estimate.provisional


def test_no_label_at_all_closes_without_an_estimate_until_one_comes(workbench: Any, database: str, clock: Any) -> None:
    monitor = workbench.monitor(database, clock, labels={"max_wait": "2d"})
    workbench.write_window()
    monitor.advance()
    clock.pass_(days=3)
    monitor.advance()
    round_ = only_round(monitor, workbench.name)
    assert round_.state == "closed"
    assert "no label came" in str(round_.problem)
    workbench.answer(monitor)
    monitor.advance()
    round_ = only_round(monitor, workbench.name)
    assert (round_.state, round_.problem) == ("closed", None)
    assert len(timeline(monitor, workbench.name, "accuracy/estimate")) == 1


def test_a_late_label_makes_a_revision(workbench: Any, database: str) -> None:
    monitor = workbench.monitor(database)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, skip=0.3)
    monitor.advance()
    with monitor.store.read() as connection:
        task = connection.execute(
            sa.select(schema.tasks).join(schema.labels).where(schema.labels.c.truth.is_(None))
        ).first()
    from opmon.types import Label

    with monitor.store.write() as connection:
        label = Label(task.id, "ben", workbench.truth[task.input_id], monitor.clock())
        queue.record(connection, [label], monitor.clock())
    assert monitor.advance().closed == 1
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, task.round_id)
    assert revision is not None
    assert revision.revision == 1
    assert len(timeline(monitor, workbench.name, "accuracy/estimate")) == 1, "what was final stays as it was told"
    assert timeline(monitor, workbench.name, "accuracy/revised") == [pytest.approx(revision.estimate.value)]


def test_an_alarm_is_one_event_and_one_tag(workbench: Any, database: str) -> None:
    rules = [{"type": "accuracy_below", "threshold": 0.999, "name": "floor", "certainty": "estimate"}]
    monitor = workbench.monitor(database, rules=rules)
    for _ in range(3):
        workbench.write_window()
        monitor.advance()
        workbench.answer(monitor, wrong=0.4)
        monitor.advance()
    with monitor.store.read() as connection:
        events = outbox.listing(connection, workbench.name)
    assert len(events) == 1
    assert [delivery["state"] for delivery in events[0]["deliveries"]] == ["delivered"]
    tags = monitor.registry.version_tags(monitor.registry.resolve(workbench.model))
    assert events[0]["id"] in tags["opmon.retrain"]


def test_a_frame_smaller_than_the_budget_is_labelled_whole(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, round={"min_inputs": 10, "max_inputs": 200, "max_age": "1h"})
    workbench.write_window(size=25)
    monitor.advance()
    assert workbench.answer(monitor) == 25
    monitor.advance()
    with monitor.store.read() as connection:
        revision = revisions.latest_estimates(connection, workbench.name)[0]
    assert revision.estimate.low == revision.estimate.value == revision.estimate.high
    assert revision.estimate.value == pytest.approx(workbench.true_accuracy(monitor, 1))


def test_what_waited_and_is_gone_lends_no_age_to_what_comes_next(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock, round={"min_inputs": 1000, "max_inputs": 5000, "max_age": "1h"})
    clock.now = datetime.now(UTC)
    path = workbench.write_window(size=30)
    assert monitor.advance().opened == 0
    path.unlink()
    clock.pass_(hours=5)
    assert monitor.advance().opened == 0
    os.utime(workbench.write_window(size=30), (clock().timestamp(),) * 2)
    assert monitor.advance().opened == 0, "it has just come"
    clock.pass_(hours=2)
    assert monitor.advance().opened == 1


def test_a_trickle_opens_when_it_is_old_enough(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock, round={"min_inputs": 1000, "max_inputs": 5000, "max_age": "1h"})
    path = workbench.write_window(size=30)
    import os

    os.utime(path, (clock().timestamp(), clock().timestamp()))
    assert monitor.advance().opened == 0
    clock.pass_(minutes=61)
    assert monitor.advance().opened == 1


def test_an_input_logged_twice_counts_once(workbench: Any, sqlite: str) -> None:
    import shutil

    monitor = workbench.monitor(sqlite)
    first = workbench.write_window()
    monitor.advance()
    shutil.copy(first, first.with_name("window-001-again.parquet"))
    monitor.advance()
    second = only_round(monitor, workbench.name, 2)
    assert (second.inputs, second.duplicates, second.state) == (0, 200, "closed")


def test_each_model_version_has_its_own_rounds_and_predictions_are_judged(workbench: Any, database: str) -> None:
    columns = {"id": "input_id", "model_version": "served_by", "prediction": "said"}
    limits = {"min_inputs": 50, "max_inputs": 200, "max_age": "3650d", "max_skew": 1.0}
    monitor = workbench.monitor(database, columns=columns, round=limits)
    workbench.write_window(served_by=["1", "9", None, "1"] * 50, said=["4"] * 200)
    cycle = monitor.advance()
    known, unknown = (only_round(monitor, workbench.name, number) for number in (1, 2))
    assert (known.model_version, known.received, known.inputs, known.state) == ("1", 150, 150, "labelling")
    assert known.skew is not None
    assert known.skew > 0.8
    assert (unknown.model_version, unknown.received, unknown.state) == ("9", 50, "opened")
    assert "9" in str(cycle.problems[0])
    workbench.answer(monitor)
    monitor.advance()
    with monitor.store.read() as connection:
        judged = revisions.latest_estimates(connection, workbench.name)[0].estimate
    assert judged.low < 0.3 < judged.high < 0.9, "what production said is judged, one class for all, not the model"


def test_only_one_process_works_on_a_monitor(workbench: Any, database: str) -> None:
    monitor = workbench.monitor(database)
    with hold(monitor.store, workbench.name), pytest.raises(LeaseHeld):
        monitor.advance()


def test_mlflow_down_delays_and_loses_nothing(workbench: Any, sqlite: str) -> None:
    from opmon.registry import MlflowRegistry

    monitor = workbench.monitor(sqlite)
    workbench.write_window()
    working, monitor.registry = monitor.registry, MlflowRegistry("http://127.0.0.1:1")
    assert monitor.advance().problems
    monitor.registry = working
    monitor.advance()
    workbench.answer(monitor)
    working, monitor.registry = monitor.registry, MlflowRegistry("http://127.0.0.1:1")
    cycle = monitor.advance()
    assert cycle.problems
    assert "127.0.0.1" in str(only_round(monitor, workbench.name).problem)
    monitor.registry = working
    assert monitor.advance().closed == 1
    assert len(timeline(monitor, workbench.name, "accuracy/estimate")) == 1


def test_a_drift_report_compares_with_the_first_round(workbench: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    monitor = workbench.monitor(database, drift={"enabled": True, "max_rows": 500, "page": True})
    workbench.write_window(temperature=[20.0 + k % 7 for k in range(200)])
    workbench.write_window(temperature=[35.0 + k % 7 for k in range(200)])
    monitor.advance()
    second = only_round(monitor, workbench.name, 2)
    assert second.drift is not None
    assert "temperature" in second.drift["drifted"]
    assert second.drift["share"] == 1, "of the one column that the log has"
    assert monitor.registry.download(second.run_id, "drift/drift.html", tmp_path / "got").exists()


def test_a_trickle_into_one_growing_file_does_not_wait_for_ever(workbench: Any, sqlite: str, clock: Any) -> None:
    import json
    import os

    limits = {"min_inputs": 1000, "max_inputs": 5000, "max_age": "1h"}
    source = {"path": "production", "format": "jsonl"}
    monitor = workbench.monitor(sqlite, clock, round=limits, source=source, columns={})
    path = workbench.folder / "production" / "log.jsonl"
    opened = []
    for _ in range(4):
        with path.open("a") as file:
            file.write(json.dumps({"pixels": [0.0] * 64}) + "\n")
        os.utime(path, (clock().timestamp(), clock().timestamp()))
        opened.append(monitor.advance().opened)
        clock.pass_(minutes=30)
    assert opened == [0, 0, 1, 0]
