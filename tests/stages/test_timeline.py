"""MLflow's charts: one value a step of what is final, whatever came before, late, or twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from opmon.config import Settings
from opmon.monitor import Monitor
from opmon.registry import MlflowRegistry
from opmon.stages.packages import installed
from opmon.stages.timelines import end_those_gone
from opmon.store import queue, revisions, rounds
from opmon.store.rounds import Round
from opmon.types import Label


def one(monitor: Any) -> Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, 1)


def told(monitor: Any, run_id: str | None) -> dict[str, Counter[int]]:
    """How many values a run holds, by key and step."""
    keys = monitor.registry._client.get_run(run_id).data.metrics
    return {key: Counter(step for step, _, _ in monitor.registry.metric_history(run_id, key)) for key in keys}


def say(monitor: Any, truths: dict[int, str | None]) -> None:
    with monitor.store.write() as connection:
        given = [Label(task, "ben", truth, monitor.clock()) for task, truth in truths.items()]
        queue.record(connection, given, monitor.clock())
    assert monitor.advance(open_new=False).problems == []


def test_provisional_final_and_late_values_have_keys_of_their_own(workbench: Any, database: str) -> None:
    """Labels in three portions, then twice a correction: each portion is an estimate, one of them final."""
    monitor = workbench.monitor(database)
    workbench.write_window()
    monitor.advance()
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, workbench.name)
    truths = {task.id: workbench.truth[task.input_id] for task in tasks}
    wrong = {task: str((int(truth) + 1) % 10) for task, truth in truths.items()}
    portions = [dict(list(truths.items())[start::3]) for start in range(3)]
    for some in (*portions, dict(list(wrong.items())[:1]), dict(list(wrong.items())[1:2])):
        say(monitor, some)
    round_ = one(monitor)
    with monitor.store.read() as connection:
        first, newest = revisions.first_final(connection, round_.id), revisions.latest_estimate(connection, round_.id)
    assert first is not None
    assert newest is not None
    assert newest.revision == first.revision + 2

    for run_id in (round_.timeline_run_id, round_.run_id):
        found = told(monitor, run_id)
        several = {key for key, steps in found.items() if steps[1] > 1}
        assert all("provisional" in key or "revised" in key for key in several), several
        history = monitor.registry.metric_history(run_id, "accuracy/estimate")
        assert [value for _, _, value in history] == [pytest.approx(first.estimate.value)]
        late = monitor.registry.metric_history(run_id, "accuracy/revised")
        assert late[-1][2] == pytest.approx(newest.estimate.value)
    known = told(monitor, round_.timeline_run_id)
    assert known["accuracy/provisional"] == known["accuracy/provisional_low"] == known["labels/provisional"] == {1: 2}
    assert known["inputs/received"] == known["labels/asked"] == known["labels/returned"] == {1: 1}


def test_a_late_estimate_of_a_round_that_had_none_adds_to_what_was_told(
    workbench: Any, database: str, clock: Any
) -> None:
    monitor = workbench.monitor(database, clock, labels={"max_wait": "2d"})
    workbench.write_window()
    monitor.advance()
    clock.pass_(days=3)
    monitor.advance()
    before = told(monitor, one(monitor).timeline_run_id)
    assert before["labels/asked"] == {1: 1}
    assert "labels/returned" not in before
    workbench.answer(monitor)
    monitor.advance()
    assert set(map(tuple, map(Counter.items, told(monitor, one(monitor).timeline_run_id).values()))) == {((1, 1),)}


def status(monitor: Any, run_id: str | None) -> str:
    return str(monitor.registry._client.get_run(run_id).info.status)


def test_a_timeline_runs_while_its_version_is_watched(workbench: Any, database: str, tmp_path: Path) -> None:
    """It ends when another version has taken its place and no round of it waits, and goes on when that is undone."""
    own = workbench.sibling(tmp_path / "own")
    monitor = own.monitor(database)

    def another() -> Round:
        own.write_window()
        assert monitor.advance().problems == []
        with monitor.store.read() as connection:
            return rounds.newest(connection, own.name, 1)[0]

    first = another()
    assert status(monitor, first.timeline_run_id) == status(monitor, first.run_id) == "RUNNING"
    own.new_version()
    second = another()
    assert second.timeline_run_id != first.timeline_run_id
    assert status(monitor, first.timeline_run_id) == "RUNNING", "its round still waits for labels"
    own.answer(monitor)
    monitor.advance()
    assert status(monitor, first.run_id) == status(monitor, second.run_id) == "FINISHED"
    assert status(monitor, first.timeline_run_id) == "FINISHED"
    assert status(monitor, second.timeline_run_id) == "RUNNING"
    monitor.registry.set_alias(monitor.registry.resolve("models:/digits/1"), "champion")
    third = another()
    assert third.timeline_run_id == first.timeline_run_id
    assert status(monitor, third.timeline_run_id) == "RUNNING"
    assert status(monitor, second.timeline_run_id) == "FINISHED"


def test_the_timelines_of_a_monitor_that_is_gone_end(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock)
    workbench.write_window()
    monitor.advance()
    timeline = one(monitor).timeline_run_id

    def end(configured: list[str]) -> list[str]:
        return end_those_gone(monitor.store, monitor.registry, configured, clock())

    assert end([]) == [], "another process may still work at it"
    clock.pass_(days=2)
    assert end([workbench.name]) == []
    assert status(monitor, timeline) == "RUNNING"
    assert end([]) == [workbench.name]
    assert status(monitor, timeline) == "FINISHED"
    assert end([]) == []
    again = workbench.monitor(sqlite, clock)
    workbench.write_window()
    again.advance()
    assert status(monitor, timeline) == "RUNNING", "it is configured once more"


def test_a_timeline_that_somebody_deleted_is_made_anew(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock)
    workbench.write_window()
    monitor.advance()
    gone = one(monitor).timeline_run_id
    monitor.registry._client.delete_run(gone)
    workbench.answer(monitor)
    assert len(monitor.advance().problems) == 1
    assert one(monitor).timeline_run_id != gone
    assert monitor.advance().closed == 1
    assert told(monitor, one(monitor).timeline_run_id)["accuracy/estimate"] == {1: 1}


def test_what_is_not_installed_is_no_parameter_of_a_round() -> None:
    assert set(installed(["opmon", "a-package-that-was-split"])) == {"opmon"}


def test_a_round_is_told_again_after_an_upgrade(workbench: Any, database: str, monkeypatch: Any) -> None:
    """A late label under other versions of packages: the round keeps those it was first told with."""
    monitor = workbench.monitor(database)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, skip=0.3)
    monitor.advance()
    monkeypatch.setattr("opmon.stages.report.installed", lambda: {"opmon": "99.0"})
    with monitor.store.read() as connection:
        task = queue.answers(connection, one(monitor).id)[0]
    say(monitor, {task.task_id: str((int(workbench.truth[task.input_id]) + 1) % 10)})
    params = monitor.registry._client.get_run(one(monitor).run_id).data.params
    assert params["version/opmon"] == installed()["opmon"]


def test_two_monitors_on_one_version_have_tags_of_their_own(workbench: Any, tmp_path: Path) -> None:
    own = workbench.sibling(tmp_path / "own")
    configured = own.configuration(f"sqlite:///{tmp_path / 'opmon.db'}")
    (watch,) = configured["monitors"].values()
    settings = Settings.from_mapping({**configured, "monitors": {"first": watch, "second": watch}}, own.folder)
    tags: dict[str, str] = {}
    before = MlflowRegistry(own.tracking_uri)
    version = before.resolve(own.model)
    old = [
        "opmon.accuracy.low",
        "opmon.accuracy.high",
        "opmon.round",
        "opmon.second.accuracy.low",
        "opmon.second.round",
    ]
    before.tag_version(version, dict.fromkeys([*old, "opmon.third.round", "ours.low"], "0.5"))
    for own.name, wrong in (("second", 0.5), ("first", 0.0), ("second", 0.5)):
        own.write_window()
        monitor = Monitor.from_settings(settings, own.name)
        monitor.advance()
        own.answer(monitor, wrong=wrong)
        assert monitor.advance().problems == []
        tags = monitor.registry.version_tags(monitor.registry.resolve(own.model))
    assert tags["opmon.monitor"] == "first"
    assert float(tags["opmon.accuracy"]) > float(tags["opmon.second.accuracy"])
    low, high = map(float, tags["opmon.second.accuracy.interval"].split(" to "))
    assert low < float(tags["opmon.second.accuracy"]) < high
    assert tags["opmon.status"] == tags["opmon.first.status"]
    assert "opmon.first.accuracy" not in tags, "the first one's are the plain ones"
    assert not set(old) & tags.keys(), "what is no longer written does not stay as it was"
    assert {"opmon.third.round", "ours.low"} <= tags.keys(), "but what is another's does"
