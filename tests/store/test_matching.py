"""A line of a label file is of one task of this database, and of no other, whatever it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from opmon.adjudication import Asked
from opmon.labels.rows import ImportedLabel
from opmon.store import _among, matching, queue, rounds
from opmon.store.engine import Store, open_store
from opmon.store.matching import match
from opmon.store.plans import RoundPlan
from opmon.types import Slice, Task
from tests.made_once import new_opmon_database

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def asked(store: Store, inputs: list[str], monitor: str = "digits", at: datetime = NOW) -> list[Task]:
    """The tasks of one more round."""
    with store.write() as connection:
        number = rounds.count(connection, monitor) + 1
        rounds.add(
            connection,
            monitor,
            [Slice("a", str(number), str(number + 1), 10, at)],
            received=10,
            only_version=None,
            model_name=monitor,
            model_version="1",
            plan=RoundPlan(),
            opened_at=at,
        )
        new = [Asked(k, name, "7", {}, {}) for k, name in enumerate(inputs)]
        queue.queue(connection, monitor, rounds.get(connection, monitor, number).id, 0, new, at)
        return [task for task in queue.open_tasks(connection, monitor) if task.round == number]


def said_of(task: Task, **changes: Any) -> ImportedLabel:
    """The line that an export of the task comes back as."""
    line = ImportedLabel(2, "7", task.id, task.monitor, task.input_id, task_key=task.key, round=task.round)
    return line._replace(**changes)


def matched(store: Store, *lines: ImportedLabel) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    with store.read() as connection:
        found = match(connection, lines)
    return found.task_ids, found.problems


@pytest.fixture
def store(database: str) -> Store:
    return open_store(database)


@pytest.fixture
def lite(tmp_path: Path) -> Store:
    return open_store(new_opmon_database(tmp_path / "lite.db"))


def test_a_line_is_of_the_task_that_all_it_says_names(store: Store) -> None:
    asked(store, ["a-1"], "letters")
    first, second = asked(store, ["a-1", "a-2"])
    nothing: dict[str, Any] = {"task_id": None, "monitor": None, "input_id": None, "round": None, "task_key": None}
    lines = [
        said_of(first),
        said_of(second, **nothing | {"task_key": second.key}),
        said_of(first, annotator="ben", task_key=None),
        said_of(second, **nothing | {"monitor": "digits", "input_id": "a-2"}, annotator="ben"),
        said_of(second, **nothing | {"task_id": second.id, "input_id": "a-2"}, annotator="cleo"),
    ]
    assert matched(store, *lines) == ((first.id, second.id, first.id, second.id, second.id), ())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"monitor": "letters"}, "says monitor 'letters', and the monitor of task t"),
        ({"input_id": "a-2"}, "says input_id 'a-2', and the input_id of task t"),
        ({"round": 2}, "says round 2, and the round of task t"),
        ({"task_id": 99}, "says task_id 99, and the task_id of task t"),
        ({"task_key": "t99-0123456789ab"}, "of task t99-0123456789ab, which this database has not"),
        ({"task_key": "t1-0123456789ab"}, "which another database asked for: here task 1 is t1-"),
        ({"task_key": "7"}, "has a task_key that is none: '7'"),
        ({"task_key": "t99999999999999999999-0123456789ab"}, "has a task_key that is none"),
        ({"task_key": None, "input_id": "a-2"}, "says input_id 'a-2', and the input_id of task 1 is 'a-1'"),
        ({"task_key": None, "monitor": "letters"}, "says monitor 'letters', and the monitor of task 1 is 'digits'"),
        ({"task_key": None, "input_id": None}, "names task 1 by its number alone"),
        ({"task_key": None, "task_id": 99}, "there is no task 99"),
        ({"task_key": None, "task_id": None, "input_id": "nobody"}, "'digits' in round 1 asked for no label of it"),
        ({"task_key": None, "task_id": None, "round": 2}, "is of input 'a-1': monitor 'digits' in round 2 asked"),
    ],
)
def test_a_line_that_contradicts_itself_is_refused(lite: Store, changes: dict[str, Any], words: str) -> None:
    (task, _) = asked(lite, ["a-1", "a-2"])
    task_ids, (problem,) = matched(lite, said_of(task, **changes))
    assert task_ids == (None,)
    assert problem.startswith("line 2 ")
    assert words in problem


def test_a_file_of_another_database_is_refused(lite: Store, tmp_path: Path) -> None:
    """A staging system watches the same log under the same name, and began an hour later."""
    staging = open_store(f"sqlite:///{tmp_path / 'staging.db'}")
    here = asked(lite, ["a-1", "a-2"])
    there = asked(staging, ["a-1", "a-2"], at=NOW + timedelta(hours=1))
    assert [replace(task, key="") for task in here] == [replace(task, key="") for task in there]
    task_ids, problems = matched(lite, *map(said_of, there))
    assert (task_ids, len(problems)) == ((None, None), 2)
    assert "which another database asked for" in problems[0]
    assert matched(lite, *map(said_of, here)) == ((1, 2), ())


def test_an_input_that_was_asked_twice_is_of_the_newest_round_or_of_the_one_named(lite: Store) -> None:
    (first,), (second,) = asked(lite, ["a-1"]), asked(lite, ["a-1"])
    line = said_of(first, task_key=None, task_id=None, round=None)
    assert matched(lite, line)[0] == (second.id,)
    assert matched(lite, line._replace(round=1))[0] == (first.id,)


def test_two_lines_of_one_task_under_different_names_are_told(lite: Store) -> None:
    (task,) = asked(lite, ["a-1"])
    lines = [said_of(task), said_of(task, task_key=None, task_id=None, line=3), said_of(task, line=4, annotator="ben")]
    assert matched(lite, *lines) == ((1, None, 1), ("line 3 answers the same task as line 2",))


def test_many_lines_are_matched_in_few_queries(lite: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = asked(lite, [f"a-{k}" for k in range(1300)])
    queries: list[str] = []
    portion: Callable[..., Any] = matching._tasks
    monkeypatch.setattr(_among, "AT_ONCE", 500)
    monkeypatch.setattr(matching, "_tasks", lambda *given: queries.append("one") or portion(*given))
    assert matched(lite, *map(said_of, tasks))[0] == tuple(task.id for task in tasks)
    by_input = [said_of(task, task_key=None, task_id=None) for task in tasks]
    assert matched(lite, *by_input)[0] == tuple(task.id for task in tasks)
    assert len(queries) == 6
