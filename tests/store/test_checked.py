"""What annotators said lately: gold tasks, and rounds that asked several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opmon.store import checked, queue
from opmon.store.engine import Store, open_store
from opmon.store.schema import tasks
from opmon.types import Label
from tests.labels.queued import NOW, asked, gold, open_round


@pytest.fixture
def store(database: str) -> Store:
    return open_store(database)


def say(store: Store, round_id: int, name: str, truth: str, *, of_gold: bool = False) -> None:
    with store.write() as connection:
        query = tasks.select().where(tasks.c.round_id == round_id, tasks.c.gold.is_not(None) == of_gold)
        queue.record(connection, [Label(row.id, name, truth, NOW) for row in connection.execute(query)], NOW)


def test_gold_tasks_come_with_what_was_said_of_them(store: Store) -> None:
    first = open_round(store, [*asked(3), *gold(2)])
    open_round(store, [*gold(1)], monitor="other")
    with store.read() as connection:
        assert checked.gold_said(connection, "digits") == []
    say(store, first, "ann", "1", of_gold=True)
    with store.read() as connection:
        found = checked.gold_said(connection, "digits")
    assert [(task.gold, task.answered) for task in found] == [("1", {"ann": "1"})] * 2


def test_numbers_of_gold_tasks_are_compared_as_numbers(store: Store) -> None:
    """Also where they were kept as they were written."""
    round_id = open_round(store, [*asked(1), replace(gold(1)[0], gold="12.0")], problem="regression")
    say(store, round_id, "ann", "12", of_gold=True)
    with store.read() as connection:
        (found,) = checked.gold_said(connection, "digits")
    assert (found.gold, found.answered) == ("12", {"ann": "12"})


def test_rounds_before_are_those_that_asked_several_with_all_their_tasks(store: Store) -> None:
    open_round(store, asked(2))
    several = open_round(store, [asked(1)[0], replace(asked(2)[1], needs=2)])
    open_round(store, asked(2, confirm=2))
    open_round(store, asked(2))
    say(store, several, "ann", "7")
    with store.read() as connection:
        before = checked.said_before(connection, "digits", 4)
        assert len(before) == 4  # rounds 2 and 3
        assert sum(bool(task.answered) for task in before) == 2
        assert len(checked.said_before(connection, "digits", 3)) == 2
        assert checked.said_before(connection, "digits", 2) == []
        assert len(checked.said_lately(connection, "digits", 2)) == 4
