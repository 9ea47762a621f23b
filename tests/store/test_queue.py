from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from opmon.adjudication import Asked
from opmon.errors import InputError
from opmon.store import queue, readiness, revisions, rounds
from opmon.store.engine import Store, open_store
from opmon.store.plans import RoundPlan
from opmon.store.schema import labels
from opmon.types import Label, Slice

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def store(database: str) -> Store:
    return open_store(database)


def open_round(store: Store, problem: str = "classification", tasks: int = 3) -> tuple[int, list[int]]:
    piece = Slice("a", "0", "10", 10, NOW)
    with store.write() as connection:
        number = rounds.count(connection, "digits") + 1
        piece = Slice("a", str(number), str(number + 1), 10, NOW)
        plan = RoundPlan(problem=problem)
        rounds.add(
            connection,
            "digits",
            [piece],
            received=10,
            only_version=None,
            model_name="digits",
            model_version="1",
            plan=plan,
            opened_at=NOW,
        )
        round_ = rounds.get(connection, "digits", number)
        rounds.update(connection, round_.id, classes=["0", "1", "7"] if problem == "classification" else None)
        new = [Asked(10 - k, f"input-{k}", "7", {"confidence": 0.5}, {"x": k}) for k in range(tasks)]
        queue.queue(connection, "digits", round_.id, 0, new, NOW)
        ids = [task.id for task in queue.open_tasks(connection, "digits") if task.round == number]
    return round_.id, ids


def say(store: Store, *labels: tuple[int, str, str | None]) -> queue.Recorded:
    given = [Label(task, annotator, truth, NOW) for task, annotator, truth in labels]
    with store.write() as connection:
        return queue.record(connection, given, NOW)


def test_tasks_come_in_queue_order_without_the_prediction(store: Store) -> None:
    open_round(store)
    with store.read() as connection:
        tasks = queue.open_tasks(connection)
    assert [task.input_id for task in tasks] == ["input-0", "input-1", "input-2"]
    assert tasks[1].payload == {"x": 1}


def test_an_answered_or_skipped_task_is_not_open(store: Store) -> None:
    _, ids = open_round(store)
    say(store, (ids[0], "ann", "7"), (ids[1], "ann", None))
    with store.read() as connection:
        assert [task.id for task in queue.open_tasks(connection, "digits")] == [ids[2]]
        assert queue.progress(connection, ["digits", "faces"], NOW) == {"digits": (3, 2, 1)}


def test_saying_the_same_again_changes_nothing(store: Store) -> None:
    round_id, ids = open_round(store)
    assert say(store, (ids[0], "ann", "7"), (ids[0], "ann", "7")) == queue.Recorded(1, 1)
    assert say(store, (ids[0], "ann", "7.0")) == queue.Recorded(0, 1)
    with store.read() as connection:
        assert queue.count(connection, round_id) == 1


def test_a_correction_is_kept_beside_what_it_corrects(store: Store) -> None:
    round_id, ids = open_round(store)
    say(store, (ids[0], "ann", "7"))
    assert say(store, (ids[0], "ann", "1")) == queue.Recorded(1, 0)
    with store.read() as connection:
        answered = {task.task_id: task for task in queue.answers(connection, round_id)}
        assert queue.count(connection, round_id) == 2
    assert answered[ids[0]].truth == "1"


def test_one_impossible_label_keeps_all_out(store: Store) -> None:
    round_id, ids = open_round(store)
    with pytest.raises(InputError, match=r"classes 0, 1, 7; got 'sevn'"):
        say(store, (ids[0], "ann", "7"), (ids[1], "ann", "sevn"))
    with pytest.raises(InputError, match="no task 999"):
        say(store, (ids[0], "ann", "7"), (999, "ann", "7"))
    with store.read() as connection:
        assert queue.count(connection, round_id) == 0


@pytest.mark.parametrize("truth", ["three", "nan", "inf", ""])
def test_regression_asks_for_a_number(store: Store, truth: str) -> None:
    _, ids = open_round(store, "regression")
    with pytest.raises(InputError, match="asks for a number"):
        say(store, (ids[0], "ann", truth))
    assert say(store, (ids[0], "ann", "0.25")).new == 1


def test_numbers_that_are_the_same_are_one_answer_however_they_are_written(store: Store) -> None:
    round_id, ids = open_round(store, "regression")
    say(store, (ids[0], "ann", "3"), (ids[0], "ben", "3.0"), (ids[0], "cem", "7"), (ids[1], "truth", "12.0"))
    assert say(store, (ids[0], "ann", "3.00"), (ids[1], "ann", "12")) == queue.Recorded(1, 1)
    with store.read() as connection:
        by_id = {task.task_id: task for task in queue.answers(connection, round_id)}
    assert (by_id[ids[0]].truth, by_id[ids[1]].truth, by_id[ids[1]].agreement) == ("3", "12", 1.0)


def test_numbers_that_were_kept_as_they_were_typed_are_the_same_too(store: Store) -> None:
    round_id, ids = open_round(store, "regression")
    say(store, (ids[0], "ann", "3"), (ids[0], "ben", "1000"), (ids[0], "cem", "1000"), (ids[0], "truth", "1000"))
    with store.write() as connection:
        for name, typed in (("ann", "3.0"), ("ben", "1000.0"), ("cem", " 1_000"), ("truth", "1e3")):
            connection.execute(labels.update().where(labels.c.annotator == name).values(truth=typed))
    with store.read() as connection:
        task = next(task for task in queue.answers(connection, round_id) if task.labels)
    assert task.answered == {"ann": "3", "ben": "1000", "cem": "1000"}
    assert (task.truth, task.agreement) == ("1000", 2 / 3)
    with store.write() as connection:
        again = [Label(ids[0], name, said, NOW) for name, said in (("ann", "3"), ("truth", "1000.0"))]
        assert queue.record_possible(connection, again, NOW)[0] == queue.Recorded(0, 2)


def test_a_moment_that_is_ahead_keeps_no_later_word_out(store: Store) -> None:
    """A file may hold local time as UTC, or lie on a share whose clock is fast."""
    round_id, ids = open_round(store)
    hour = timedelta(hours=1)
    with store.write() as connection:
        queue.record(connection, [Label(ids[0], "ann", "7", NOW + 2 * hour)], NOW)
        for at, new in ((NOW - hour, 0), (NOW + hour, 1)):
            given = [Label(ids[0], "ann", "1", at)]
            assert queue.record_each(connection, given, NOW + hour, by_time=True)[0].new == new
        ahead = [Label(ids[0], "ann", "7", NOW + 2 * hour)]
        assert queue.record_possible(connection, ahead, NOW + hour)[0].new == 0, "it is the same answer"
    with store.read() as connection:
        assert {task.task_id: task for task in queue.answers(connection, round_id)}[ids[0]].truth == "1"


def test_the_same_said_twice_at_once_is_kept_once(store: Store) -> None:
    round_id, ids = open_round(store)
    given = [Label(task, "ann", "7", NOW) for task in ids]
    with ThreadPoolExecutor(1) as other:
        with store.write() as connection:
            assert queue.record(connection, given, NOW).new == 3
            second = other.submit(say, store, *((task, "ann", "7") for task in ids))
            while not second.done() and not somebody_waits(store):
                time.sleep(0.01)
        assert second.result() == queue.Recorded(0, 3)
    with store.read() as connection:
        assert queue.count(connection, round_id) == 3


def somebody_waits(store: Store) -> bool:
    """Whether a session waits for a lock; on SQLite one writes at a time whatever is done."""
    if store.is_sqlite:
        return True
    with store.read() as connection:
        return bool(connection.scalar(sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")))


def test_thousands_of_labels_at_once(store: Store) -> None:
    _, ids = open_round(store, tasks=3000)
    assert say(store, *((task, "ann", "7") for task in ids)) == queue.Recorded(3000, 0)


def test_late_labels_make_a_closed_round_unfinished_again(store: Store) -> None:
    from opmon.types import Estimate

    round_id, ids = open_round(store)
    say(store, (ids[0], "ann", "7"))
    with store.write() as connection:
        estimate = Estimate(0.9, 0.8, 1.0, 1, 10, 1.0, "srs")
        revisions.add_estimate(connection, round_id, estimate, failures=0, labels_seen=1, made_at=NOW)
        rounds.update(connection, round_id, state="closed", reported=0)
        assert rounds.unfinished(connection, "digits") == []
        assert readiness.monitors_with_work(connection, NOW) == set()
    say(store, (ids[0], "ann", "1"))
    with store.read() as connection:
        assert [r.number for r in rounds.unfinished(connection, "digits")] == [1]
        assert readiness.monitors_with_work(connection, NOW) == {"digits"}


def test_labels_need_a_time_zone() -> None:
    with pytest.raises(InputError, match="time zone"):
        Label(1, "ann", "7", datetime(2026, 3, 1) + timedelta(0))  # noqa: DTZ001


def test_many_labels_at_once_are_kept_as_they_were_said(store: Store) -> None:
    """Enough of them that each database takes them its own way, with all that a text may hold."""
    odd = ["\\", "\\N", "\\.", "a\tb", "a\nb", "a\r\nb", "", "NULL", '"', "'", "é😀", "{7,8}", "\x7f\u2028", "%s"]
    _, ids = open_round(store, tasks=210)
    moments = [NOW + timedelta(microseconds=k) for k in range(len(ids))]
    given = [
        Label(task, f"ann\\{k % 3}\t{k % 2}", None if k % 2 else "7", moments[k], odd[k % 14] if k % 2 else None, k / 7)
        for k, task in enumerate(ids)
    ]
    with store.write() as connection:
        assert queue.record(connection, given, NOW).new == len(given)
    with store.read() as connection:
        rows = connection.execute(sa.select(labels).order_by(labels.c.id)).all()
        found = [Label(row.task_id, row.annotator, row.truth, row.at, row.why, row.seconds) for row in rows]
    assert found == given
    with store.write() as connection:
        assert queue.record(connection, given, NOW).new == 0
