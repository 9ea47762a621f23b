"""The cycle hands tasks out and takes answers back by itself; a provider in trouble costs only itself."""

from __future__ import annotations

import csv
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest

from opmon.abc import LabelProvider, Pulled, Said
from opmon.errors import UnavailableError
from opmon.queries.monitors import monitor_view
from opmon.stages.labelling import Desk
from opmon.store import queue, rounds
from opmon.types import Task
from opmon.waiting import hanging
from tests.patience import until


@dataclass(frozen=True)
class Pile(LabelProvider):
    """Tasks and answers in memory."""

    patience: ClassVar[float] = 20.0
    batch: ClassVar[int] = 6

    given: list[Task] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    pushes: list[int] = field(default_factory=list)
    troubles: list[Exception | threading.Event] = field(default_factory=list)

    def push(self, tasks: Sequence[Task]) -> None:
        self.pushes.append(len(tasks))
        self.stumble()
        there = {task.key for task in self.given}
        self.given.extend(task for task in tasks if task.key not in there)

    def pull(self, since: str) -> Pulled:
        return Pulled(self.said[int(since or 0) :], str(len(self.said)))

    def reconcile(self, open_keys):
        return {task.key for task in self.given}

    def stumble(self) -> None:
        if self.troubles:
            trouble = self.troubles.pop(0)
            if isinstance(trouble, Exception):
                raise trouble
            trouble.wait(60)


@pytest.fixture
def pile() -> Pile:
    return Pile()


@pytest.fixture
def monitor(workbench, sqlite, clock, pile):
    workbench.write_window()
    monitor = workbench.monitor(sqlite, clock)
    monitor._desk = Desk(pile, "pile", "pile-1")
    return monitor


def say(workbench, pile: Pile, tasks: Sequence[Task]) -> None:
    for task in tasks:
        pile.said.append(Said(task.key, "ann", workbench.truth[task.input_id], datetime(2026, 3, 2, tzinfo=UTC)))


def state(monitor) -> str:
    with monitor.store.read() as connection:
        return str(rounds.get(connection, monitor.settings.name, 1).state)


def labels(monitor) -> int:
    with monitor.store.read() as connection:
        return queue.count(connection, rounds.get(connection, monitor.settings.name, 1).id)


def test_a_round_goes_out_and_comes_back(workbench, monitor, pile) -> None:
    monitor.advance()
    with monitor.store.read() as connection:
        asked = [task.key for task in queue.open_tasks(connection)]
    assert [task.key for task in pile.given] == asked
    assert set(pile.pushes[:-1]) == {6}
    assert len(set(pile.given[0].classes)) == 10
    assert pile.given[0].due_at is not None
    say(workbench, pile, pile.given[:5])
    monitor.advance()
    assert (labels(monitor), state(monitor)) == (5, "labelling")
    say(workbench, pile, pile.given[5:])
    monitor.advance()
    assert state(monitor) == "closed"


def test_what_is_told_again_counts_once_and_a_correction_counts(workbench, monitor, pile) -> None:
    monitor.advance()
    task = pile.given[0]
    first, second = (datetime(2026, 3, 2, hour, tzinfo=UTC) for hour in (1, 2))
    pile.said.extend([Said(task.key, "ann", "1", first), Said(task.key, "ann", "2", second)])
    monitor.advance()
    pile.said.extend(pile.said[:2])
    monitor.advance()
    assert labels(monitor) == 2
    with monitor.store.read() as connection:
        answered = queue.answers(connection, 1)
    assert [each.truth for each in answered if each.is_spoken_of] == ["2"]


def test_what_cannot_be_taken_is_told_and_the_others_count(workbench, monitor, pile) -> None:
    monitor.advance()
    at = datetime(2026, 3, 2, tzinfo=UTC)
    pile.said.extend([Said(pile.given[0].key, "ann", "a cat", at), Said("t99-0123456789ab", "ann", "1", at)])
    pile.said.extend([Said(pile.given[1].key, "ann", "1", at), Said(None, "a table", "1", at, pile.given[2].input_id)])
    (problem,) = monitor.advance().problems
    assert "gave 2 that cannot be taken" in str(problem)
    assert "a cat" in str(problem)
    assert "t99-0123456789ab" in str(problem)
    assert labels(monitor) == 2
    assert monitor.advance().problems == []


@pytest.mark.parametrize("trouble", [UnavailableError("down"), RuntimeError("a fault in the plugin"), OSError("gone")])
def test_a_provider_that_fails_rests_and_is_tried_again(monitor, pile, clock, trouble) -> None:
    pile.troubles.append(trouble)
    (problem,) = monitor.advance().problems
    assert str(trouble) in str(problem)
    assert isinstance(problem, UnavailableError)
    assert state(monitor) == "labelling"
    assert (monitor.advance().problems, len(pile.pushes)) == ([], 1)
    clock.pass_(seconds=31)
    assert monitor.advance().problems == []
    assert pile.given


def provider_needs(monitor, clock) -> list[str]:
    watch = replace(monitor.settings.watch, provider="pile-1")
    with monitor.store.read() as connection:
        view = monitor_view(connection, watch, clock(), shown=1)
    return [need.message for need in view.needs if need.kind in ("provider", "cycle")]


def test_a_provider_that_fails_is_shown_with_its_last_failure_and_since_when(monitor, pile, clock) -> None:
    began = clock()
    pile.troubles.extend([UnavailableError("it is down"), UnavailableError("it is still down")])
    monitor.advance()
    clock.pass_(seconds=31)
    monitor.advance()
    since = f"{began:%Y-%m-%d %H:%M} UTC"
    failing = f"the label provider has failed 2 times since {since}, the last time so: it is still down"
    assert provider_needs(monitor, clock) == [failing]
    monitor.advance()  # it rests: nothing is tried, and it is still shown
    assert provider_needs(monitor, clock) == [failing]
    clock.pass_(hours=2)
    monitor.advance()
    assert provider_needs(monitor, clock) == []


def test_what_is_shown_of_a_provider_that_fails_has_no_secret(monitor, pile, clock) -> None:
    pile.troubles.append(RuntimeError("https://ann:pa55word@labels.example.com/?token=pa55word did not answer"))
    monitor.advance()
    (told,) = provider_needs(monitor, clock)
    assert "labels.example.com" in told
    assert "pa55word" not in told


def test_a_provider_that_hangs_is_not_waited_for_and_not_called_twice(monitor, pile, clock, monkeypatch) -> None:
    monkeypatch.setattr(Pile, "patience", 0.2)
    released = threading.Event()
    pile.troubles.append(released)
    (problem,) = monitor.advance().problems
    assert "did not answer within 0.2 s" in str(problem)
    clock.pass_(seconds=31)
    (problem,) = monitor.advance().problems
    assert "still hangs" in str(problem)
    assert len(pile.pushes) == 1
    released.set()
    until(lambda: not any(key.startswith("the tasks of") for key in hanging()))
    clock.pass_(hours=2)
    assert monitor.advance().problems == []
    assert len(pile.given) == len({task.key for task in pile.given})


def test_what_a_provider_lost_and_what_another_one_lacks_is_handed_over_again(workbench, monitor, pile, clock) -> None:
    monitor.advance()
    say(workbench, pile, pile.given[:3])
    asked = [task.key for task in pile.given]
    del pile.given[10:20]
    clock.pass_(hours=2)
    monitor.advance()
    assert sorted(task.key for task in pile.given) == sorted(asked)
    other = replace(pile, given=[], said=[])
    monitor._desk = Desk(other, "pile", "pile-2")
    monitor.advance()
    assert [task.key for task in other.given] == asked[3:]


def test_files_are_the_built_in_provider(workbench, sqlite, tmp_path: Path) -> None:
    workbench.write_window()
    monitor = workbench.monitor(sqlite, labels={"provider": {"path": "labels"}})
    assert monitor.advance().problems == []
    (path,) = (workbench.folder / "labels" / workbench.name).glob("*.csv")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(row | {"label": workbench.truth[row["input_id"]]} for row in rows)
    assert monitor.advance().problems == []
    assert state(monitor) == "closed"
