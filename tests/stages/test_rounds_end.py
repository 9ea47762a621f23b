"""Whatever happens to a round, it comes to an end, and is told once."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.errors import InputError, StateUnavailable
from opmon.registry import MlflowRegistry
from opmon.stages.draw import frame_path
from opmon.stages.frames import read_frame
from opmon.stages.open import open_round
from opmon.stages.score import score_round
from opmon.store import draws, outbox, queue, revisions, rounds, schema, verdicts
from opmon.types import Label


def one(monitor: Any, number: int = 1) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def newest(monitor: Any, number: int = 1) -> revisions.Revision | None:
    with monitor.store.read() as connection:
        return revisions.latest_estimate(connection, one(monitor, number).id)


def say(monitor: Any, task: Any, truth: str | None, annotator: str = "ben") -> None:
    with monitor.store.write() as connection:
        queue.record(connection, [Label(task.id, annotator, truth, monitor.clock())], monitor.clock())


def a_task(monitor: Any) -> Any:
    with monitor.store.read() as connection:
        return connection.execute(sa.select(schema.tasks).order_by(schema.tasks.c.id)).first()


SAMPLERS = ["adaptive", "css", "deepest", "gbs", "rhc", "srs", "ssrs", "sups", "two_stage"]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_from_inputs_to_the_whole_draw_in_mlflow(
    workbench: Any, sqlite: str, tmp_path: Path, sampler: str
) -> None:
    monitor = workbench.monitor(sqlite, sampler={"type": sampler, "budget": 120})
    workbench.write_window(size=200)
    for _ in range(10):
        assert monitor.advance().problems == []
        workbench.answer(monitor)
    assert one(monitor).state == "closed"
    assert not monitor.has_work()
    revision = newest(monitor)
    assert revision is not None
    assert revision.estimate.n == 120
    assert revision.estimate.low <= workbench.true_accuracy(monitor, 1) <= revision.estimate.high
    kept = monitor.registry.download(one(monitor).run_id, "draw.npz", tmp_path / "got").read_bytes()
    assert len(draws.unpack_draw(kept)) == 120
    assert not list((monitor.folder / "rounds").rglob("*.*"))


@pytest.mark.parametrize("sampler", ["srs", "gbs", "adaptive"])
def test_a_round_that_nobody_can_answer_rests_until_somebody_can(workbench: Any, sqlite: str, sampler: str) -> None:
    monitor = workbench.monitor(sqlite, sampler={"type": sampler, "budget": 120})
    workbench.write_window()
    for _ in range(7):
        monitor.advance()
        workbench.answer(monitor, skip=1.0)
    round_ = one(monitor)
    assert round_.state == "closed"
    assert "nobody could answer" in str(round_.problem)
    assert not monitor.has_work()
    assert monitor.registry._client.get_run(round_.run_id).info.status == "FINISHED"
    task = a_task(monitor)
    say(monitor, task, workbench.truth[task.input_id])
    assert monitor.has_work()
    assert monitor.advance().problems == []
    assert newest(monitor) is not None
    assert not monitor.has_work()


def test_the_deadline_ends_the_waves(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock, sampler={"type": "gbs", "budget": 120})
    workbench.write_window()
    monitor.advance()
    first = workbench.answer(monitor)
    clock.pass_(days=8)
    assert monitor.advance().closed == 1
    revision = newest(monitor)
    assert revision is not None
    assert revision.estimate.n == first


def test_a_label_that_comes_while_mlflow_is_down_is_estimated_before_it_is_told(workbench: Any, database: str) -> None:
    """Half a report is out when MLflow fails; then an annotator changes her mind."""
    monitor = workbench.monitor(database)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, skip=0.2)
    working = monitor.registry

    class FailsHalfWay(MlflowRegistry):
        def log_artifacts(self, *arguments: Any) -> None:
            MlflowRegistry("http://127.0.0.1:1").experiment("nothing")

    monitor.registry = FailsHalfWay(workbench.tracking_uri)
    assert monitor.advance().problems
    with monitor.store.read() as connection:
        skipped = connection.execute(
            sa.select(schema.tasks).join(schema.labels).where(schema.labels.c.truth.is_(None))
        ).first()
    say(monitor, skipped, workbench.truth[skipped.input_id])
    monitor.registry = working
    cycle = monitor.advance()
    assert (cycle.problems, cycle.closed) == ([], 1)
    revision = newest(monitor)
    assert revision is not None
    assert revision.revision == 1


def test_answers_taken_back_do_not_hang_a_round(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, sampler={"type": "srs", "budget": 2})
    workbench.write_window()
    monitor.advance()
    task = a_task(monitor)
    say(monitor, task, workbench.truth[task.input_id])
    working, monitor.registry = monitor.registry, MlflowRegistry("http://127.0.0.1:1")
    assert monitor.advance().problems
    say(monitor, task, None)
    monitor.registry = working
    assert monitor.advance().problems == []
    assert one(monitor).state == "labelling"


def test_another_database_with_the_same_mlflow_begins_anew(workbench: Any, tmp_path: Path) -> None:
    """As when a monitor moves from SQLite to PostgreSQL."""
    workbench.write_window()
    rules = [{"type": "accuracy_below", "threshold": 0.999, "certainty": "estimate"}]
    events = set()
    for name, budget in (("first", 30), ("second", 40)):
        sampler = {"type": "srs", "budget": budget}
        monitor = workbench.monitor(f"sqlite:///{tmp_path / name}.db", sampler=sampler, rules=rules)
        monitor.advance()
        workbench.answer(monitor, wrong=0.5)
        cycle = monitor.advance()
        assert (cycle.problems, cycle.closed) == ([], 1)
        history = monitor.registry.metric_history(one(monitor).timeline_run_id, "labels/asked")
        assert [value for _, _, value in history] == [budget]
        with monitor.store.read() as connection:
            events |= {event["id"] for event in outbox.listing(connection)}
    assert len(events) == 2, "a receiver that remembers ids must not take the second alarm for the first"


def test_a_model_version_deleted_meanwhile_does_not_hold_up_its_round(workbench: Any, tmp_path: Path) -> None:
    own = workbench.sibling(tmp_path / "own")
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    monitor = own.monitor(database, model="models:/digits/1")
    own.write_window()
    monitor.advance()
    own.answer(monitor)
    monitor.registry._client.delete_model_version("digits", "1")
    monitor = own.monitor(database, model="models:/digits/1")  # another process, that has not looked it up
    assert one(monitor).state == "labelling"
    assert monitor.advance(open_new=False).closed == 1


def test_a_round_that_cannot_go_on_is_tried_once_a_cycle(workbench: Any, sqlite: str) -> None:
    columns = {"id": "input_id", "model_version": "served_by"}
    monitor = workbench.monitor(sqlite, columns=columns)
    for version in ("9", "1", "1", "1"):
        workbench.write_window(served_by=[version] * 200)
    cycle = monitor.advance()
    assert (cycle.opened, len(cycle.problems), cycle.waiting) == (4, 1, 3)
    cycle = monitor.advance()
    assert (cycle.opened, len(cycle.problems)) == (0, 1)


def test_a_fault_in_one_round_does_not_stop_the_others(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite)
    workbench.write_window()
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor)
    with monitor.store.write() as connection:  # a draw that no opmon wrote
        connection.execute(schema.rounds.update().where(schema.rounds.c.number == 1).values(draw=b"PK rubbish"))
    with pytest.raises(Exception, match=r"pickled|zip|magic"):
        monitor.advance()
    assert one(monitor, 2).state == "closed"
    assert "a fault in opmon" in str(one(monitor, 1).problem)


def test_another_model_of_the_same_monitor_begins_its_history_anew(workbench: Any, tmp_path: Path) -> None:
    """Version 1 of one model says nothing of version 1 of another."""
    own = workbench.sibling(tmp_path / "own")
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    rules = [{"type": "accuracy_below", "threshold": 1, "certainty": "estimate", "patience": 2}]
    source = own.monitor(database).registry._client.get_model_version("digits", "1").source
    own.monitor(database).registry._client.create_registered_model("other")
    own.monitor(database).registry._client.create_model_version("other", source)
    states = []
    for model in ("models:/digits/1", "models:/other/1"):
        monitor = own.monitor(database, rules=rules, model=model)
        own.write_window()
        monitor.advance()
        own.answer(monitor, wrong=0.5)
        monitor.advance()
        with monitor.store.read() as connection:
            states.append(verdicts.latest_verdicts(connection, one(monitor, len(states) + 1).id)[0].state)
    assert states == ["ok", "ok"]


def test_annotators_meet_the_rounds_that_wait_first(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock)
    workbench.write_window()
    monitor.advance()
    clock.pass_(days=8)
    workbench.write_window()
    monitor.advance()
    assert [one(monitor, number).state for number in (1, 2)] == ["closed", "labelling"]
    with monitor.store.read() as connection:
        order = [task.round for task in queue.open_tasks(connection, workbench.name)]
    assert order == sorted(order, reverse=True)
    assert set(order) == {1, 2}


def test_two_databases_share_a_state_folder_and_no_frame(workbench: Any, tmp_path: Path) -> None:
    """One of them is scored and waits; the other's first round is made meanwhile, of other inputs."""
    first = workbench.monitor(f"sqlite:///{tmp_path / 'a.db'}")
    workbench.write_window()
    with first._at_work() as work:
        open_round(work)
        score_round(work, one(first))
    second = workbench.monitor(f"sqlite:///{tmp_path / 'b.db'}", round={"min_inputs": 50, "max_inputs": 50})
    second.advance()
    with first._at_work() as work:
        assert read_frame(frame_path(work, one(first))).size == 200
    with second._at_work() as work:
        assert read_frame(frame_path(work, one(second))).size == 50


@pytest.mark.parametrize("annotator", ["", "a" * 201, "an\0n"])
def test_a_name_that_no_database_takes_is_told(workbench: Any, database: str, annotator: str) -> None:
    monitor = workbench.monitor(database)
    workbench.write_window()
    monitor.advance()
    with pytest.raises(InputError, match="annotator"):
        say(monitor, a_task(monitor), "3", annotator)


def test_text_with_nul_can_be_labelled(workbench: Any, database: str) -> None:
    monitor = workbench.monitor(database)
    workbench.write_window(note=["zero\0byte"] * 200)
    assert monitor.advance().problems == []


def test_a_full_disk_is_told_and_the_round_goes_on_when_there_is_room(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock)
    workbench.write_window()
    key = f"{workbench.name}/round/1/{clock().isoformat()}"
    file = monitor.folder / "rounds" / workbench.name / f"1-{zlib.crc32(key.encode()):08x}" / "draw.npz"
    file.parent.mkdir(parents=True)
    file.symlink_to("/dev/full")  # every write to it finds the disk full
    cycle = monitor.advance()
    assert cycle.faults == []
    (problem,) = cycle.problems
    assert isinstance(problem, StateUnavailable)
    assert "the disk is full. Free some space. Nothing is lost." in str(problem)
    assert one(monitor).problem == str(problem)
    file.unlink()
    assert monitor.advance().problems == []
    assert one(monitor).state == "labelling"
