"""How drawn inputs are asked: several annotators, gold tasks, and what becomes of rounds with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.errors import InputError
from opmon.labels.queue import Answer, LabelQueue
from opmon.store import checked, queue, readiness, revisions, rounds
from opmon.store.schema import tasks


def rows(monitor: Any) -> list[Any]:
    with monitor.store.read() as connection:
        return list(connection.execute(sa.select(tasks).order_by(tasks.c.id)))


def answer_all(monitor: Any, workbench: Any, annotator: str, wrong: float = 0.0) -> int:
    """One annotator answers all that they get; the first ``wrong`` share of it wrongly."""
    desk, done = LabelQueue(monitor.store, {}, monitor.clock), 0
    while taken := desk.take(annotator, workbench.name, 20).tasks:
        given = []
        for task in taken:
            truth = workbench.truth.get(task.input_id, "0")
            given.append(Answer(task.key, str((int(truth) + 1) % 10) if done < wrong * 40 else truth))
            done += 1
        assert desk.answer(annotator, given).refused == {}
    return done


def test_a_random_share_is_asked_of_two(workbench: Any, sqlite: str, clock: Any) -> None:
    changes = {"labels": {"overlap": {"answers": 2, "share": 0.25}}}
    monitor = workbench.monitor(sqlite, clock, **changes)
    workbench.write_window()
    monitor.advance()
    needs = [row.needs for row in rows(monitor)]
    assert len(needs) // 4 <= needs.count(2) <= len(needs) // 4 + 1
    assert set(needs) == {1, 2}
    answer_all(monitor, workbench, "ann")
    assert monitor.advance().closed == 0
    view = status(monitor, workbench)
    assert view.queue.further == view.queue.open == needs.count(2)
    answer_all(monitor, workbench, "ben")
    assert monitor.advance().closed == 1


def status(monitor: Any, workbench: Any) -> Any:
    from opmon.queries.monitors import monitor_view

    with monitor.store.read() as connection:
        return monitor_view(connection, monitor.settings.watch, monitor.clock(), shown=5)


def test_the_same_are_chosen_after_a_kill(workbench: Any, tmp_path: Path, clock: Any) -> None:
    from tests.made_once import new_opmon_database

    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        address = new_opmon_database(tmp_path / name / "opmon.db")
        monitor = workbench.monitor(address, clock, labels={"overlap": {"share": 0.3}}, seed=5)
        if not workbench.windows:
            workbench.write_window()
        monitor.advance()
        found.append([(row.position, row.place, row.needs) for row in rows(monitor)])
    assert found[0] == found[1]


def test_second_opinions_of_failures_settle_the_round(workbench: Any, sqlite: str, clock: Any) -> None:
    """Ann errs; whoever is asked of her failures does not: the estimate is that of right labels."""
    changes = {"labels": {"overlap": {"answers": 2, "of": "failures"}}}
    monitor = workbench.monitor(sqlite, clock, **changes)
    workbench.write_window()
    monitor.advance()
    drawn = len(rows(monitor))
    assert answer_all(monitor, workbench, "ann", wrong=0.25) == drawn
    assert monitor.advance().closed == 0, "second opinions are missing"
    second, third = answer_all(monitor, workbench, "ben"), answer_all(monitor, workbench, "cat")
    assert 5 <= second < drawn
    assert 3 <= third <= second
    assert monitor.advance().closed == 1
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        answered = queue.answers(connection, round_.id)
        assert revisions.latest_estimate(connection, round_.id).estimate.provisional is False
    still_wrong = [task for task in answered if task.truth != workbench.truth[task.input_id]]
    assert all(task.truth == task.prediction for task in still_wrong), (
        "only errors that agree with the model are unseen"
    )
    assert len(still_wrong) < 4


def gold_file(workbench: Any, count: int) -> Path:
    path = workbench.folder / "gold.jsonl"
    pixels = [float(each) for each in workbench.images[0]]
    truth = str(workbench.targets[0])
    lines = [{"input_id": f"g-{k}", "label": truth, "payload": {"pixels": pixels}} for k in range(count)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_gold_tasks_are_in_the_queue_and_in_no_count(workbench: Any, sqlite: str, clock: Any) -> None:
    gold_file(workbench, 8)
    changes = {"labels": {"gold": {"file": "gold.jsonl", "share": 0.1}}}
    monitor = workbench.monitor(sqlite, clock, **changes)
    workbench.write_window()
    workbench.write_window()
    monitor.advance()
    seen = {tuple(sorted(row.payload)) for row in rows(monitor)}
    drawn = [row for row in rows(monitor) if row.gold is None]
    known = [row for row in rows(monitor) if row.gold is not None]
    if len(seen) > 1:
        pytest.fail(f"gold tasks can be told from others: {seen}")
    assert 4 <= len(known) <= 10
    assert len({row.input_id for row in known}) == min(len(known), 8), "those come first that were asked the least"
    answer_all(monitor, workbench, "ann")
    assert monitor.advance().closed == 2
    view = status(monitor, workbench)
    assert (view.queue.asked, view.queue.spoken) == (len(drawn), len(drawn))
    with monitor.store.read() as connection:
        said = checked.gold_said(connection, workbench.name)
    assert {task.gold for task in said} == {str(workbench.targets[0])}
    assert len(said) >= 1


def test_gold_that_can_be_told_from_others_is_left_out(workbench: Any, sqlite: str, clock: Any, caplog: Any) -> None:
    path = gold_file(workbench, 2)
    path.write_text(path.read_text().replace("pixels", "pixel"))
    monitor = workbench.monitor(sqlite, clock, labels={"gold": {"file": "gold.jsonl", "share": 0.1}})
    workbench.write_window()
    monitor.advance()
    assert all(row.gold is None for row in rows(monitor))
    assert "has 0 gold tasks" in caplog.text


def test_a_gold_file_that_is_missing_stops_no_round(workbench: Any, sqlite: str, clock: Any, caplog: Any) -> None:
    monitor = workbench.monitor(sqlite, clock, labels={"gold": {"file": "gold.jsonl"}})
    workbench.write_window()
    monitor.advance()
    assert rows(monitor)
    assert "there is no gold file" in caplog.text


def test_the_next_wave_is_queued_as_soon_as_the_last_one_is_labelled(workbench: Any, sqlite: str, clock: Any) -> None:
    """What the page and the API record marks the round: the service's attention finds it within seconds."""
    monitor = workbench.monitor(sqlite, clock, sampler={"type": "adaptive", "budget": 80, "waves": 2})
    workbench.write_window()
    monitor.advance()
    first = len(rows(monitor))
    assert first < 80
    with monitor.store.read() as connection:
        assert readiness.monitors_with_work(connection, clock()) == set()
    answer_all(monitor, workbench, "ann")
    with monitor.store.read() as connection:
        assert readiness.monitors_with_work(connection, clock()) == {workbench.name}
    monitor.advance(open_new=False)
    second = rows(monitor)[first:]
    assert second
    assert {row.wave for row in second} == {1}
    answer_all(monitor, workbench, "ann")
    assert monitor.advance(open_new=False).closed == 1


def test_overlap_of_failures_is_for_classes(workbench: Any, sqlite: str) -> None:
    changes = {"problem": "regression", "labels": {"overlap": {"of": "failures"}}, "sampler": {"type": "srs"}}
    with pytest.raises(InputError, match="of failures is of classes"):
        workbench.monitor(sqlite, rules=[], **changes)


def test_what_annotators_saw_is_erased_when_it_was_kept_long_enough(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock, keep={"payloads": "30d"})
    for _ in range(2):
        workbench.write_window()
        monitor.advance()
        answer_all(monitor, workbench, "ann")
        monitor.advance()
        clock.pass_(days=20)
    (told,) = monitor.prune(really=False)
    assert (told.round, told.tasks > 0, told.bytes > 1000) == (1, True, True)
    assert all(row.payload for row in rows(monitor))
    assert monitor.prune(really=True) == (told,)
    assert monitor.prune(really=True) == ()
    erased = [row for row in rows(monitor) if not row.payload]
    assert len(erased) == told.tasks
    with monitor.store.read() as connection:
        answered = queue.answers(connection, erased[0].round_id)
    assert {tuple(task.payload) for task in answered} == {("erased",)}
    (key,) = (said.task.key for said in LabelQueue(monitor.store).said("ann", workbench.name, 500)[-1:])
    desk = LabelQueue(monitor.store, {}, clock)
    assert desk.answer("ann", [Answer(key, "9" if answered[0].truth != "9" else "8")]).new == 1
    assert monitor.advance().problems == [], "the round is estimated again, and reported with what is left"
