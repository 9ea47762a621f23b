"""Whether a round is ready is always what its state, tasks, labels and estimates say; finding out is an index away."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.adjudication import TRUTH, Asked
from opmon.store import queue, readiness, revisions, rounds
from opmon.store.engine import Store, open_store
from opmon.store.opinions import lacking
from opmon.store.plans import RoundPlan
from opmon.store.schema import deliveries, estimates, events, labels, tasks
from opmon.store.states import RoundState
from opmon.types import Estimate, Label, Slice

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MONITORS = ("digits", "faces")


@pytest.fixture
def store(database: str) -> Store:
    return open_store(database)


def open_round(store: Store, monitor: str) -> int:
    with store.write() as connection:
        number = rounds.count(connection, monitor) + 1
        rounds.add(
            connection,
            monitor,
            [Slice("a", str(number), str(number + 1), 10, NOW)],
            received=10,
            only_version=None,
            model_name="m",
            model_version="1",
            plan=RoundPlan(),
            opened_at=NOW,
        )
        return rounds.get(connection, monitor, number).id


def step(store: Store, dice: random.Random, *, plain: bool = False) -> None:
    """Something that may happen: a round opens, is drawn, is labelled, estimated, closed, given up.

    ``plain``: every task is asked of one annotator, and none is gold.
    """
    with store.read() as connection:
        there = [round_ for monitor in MONITORS for round_ in rounds.newest(connection, monitor, 100)]
        asked = list(connection.scalars(sa.select(tasks.c.id)))
    if not there or dice.random() < 0.1:
        open_round(store, dice.choice(MONITORS))
        return
    chosen = dice.choice(there)
    kind = dice.choice(("ask", "label", "label", "label", "estimate", "tell", "state"))
    with store.write() as connection:
        if kind == "ask":
            position = connection.scalar(sa.select(sa.func.count()).select_from(tasks)) or 0
            needs, confirm = (1, 0) if plain else (dice.choice((1, 1, 2)), dice.choice((0, 2)))
            gold = None if plain else dice.choice((None, None, "2"))
            new = [
                Asked(position, f"i{position}", "1", {}, {}, needs=needs, confirm=confirm),
                Asked(position + 1, f"i{position + 1}", "1", {}, {}, gold=gold),
            ]
            queue.queue(connection, chosen.monitor, chosen.id, 0, new, NOW)
            rounds.update(connection, chosen.id, state="labelling")
        elif kind == "label" and asked:
            said = [
                (dice.choice(asked), dice.choice(("ann", "ben", TRUTH)), dice.choice(("1", "2", None)))
                for _ in range(2)
            ]
            queue.record(connection, [Label(*each, NOW) for each in said], NOW)
        elif kind == "estimate":
            estimate = Estimate(0.9, 0.8, 1.0, 1, 10, 1.0, "srs", provisional=dice.random() < 0.5)
            seen = queue.count(connection, chosen.id)
            revisions.add_estimate(connection, chosen.id, estimate, failures=0, labels_seen=seen, made_at=NOW)
            rounds.update(connection, chosen.id, state="labelling" if estimate.provisional else "estimated")
        elif kind == "tell":
            latest = revisions.latest_estimate(connection, chosen.id)
            rounds.update(connection, chosen.id, reported=-1 if latest is None else latest.revision)
        else:
            rounds.update(connection, chosen.id, state=dice.choice(list(RoundState)))


def by_looking_through_everything(store: Store) -> set[int]:
    """The ready rounds, from all tasks, labels and estimates."""
    with store.read() as connection:
        of_drawn = labels.c.task_id.in_(sa.select(tasks.c.id).where(tasks.c.gold.is_(None)))
        said = connection.execute(sa.select(labels.c.round_id, labels.c.task_id, labels.c.truth).where(of_drawn)).all()
        newest = sa.select(estimates.c.round_id, sa.func.max(estimates.c.labels_seen)).group_by(estimates.c.round_id)
        seen = {row[0]: row[1] for row in connection.execute(newest)}
        last = sa.select(estimates.c.round_id, sa.func.max(estimates.c.revision)).group_by(estimates.c.round_id)
        made = {row[0]: row[1] for row in connection.execute(last)}
        open_ = {task_id for task_id, lacks in by_what_was_said(connection).items() if lacks}
        asked = connection.execute(sa.select(tasks.c.id, tasks.c.round_id).where(tasks.c.gold.is_(None))).all()
        there = [round_ for monitor in MONITORS for round_ in rounds.newest(connection, monitor, 100)]
    ready = set()
    for round_ in there:
        own = [row for row in said if row.round_id == round_.id]
        match round_.state:
            case "labelling":
                is_ready = all(row.id not in open_ for row in asked if row.round_id == round_.id)
            case "estimated" if round_.id in seen:
                is_ready = round_.reported < made[round_.id] or len(own) > seen[round_.id]
            case "estimated":
                is_ready = True
            case "closed" if round_.id in seen:
                is_ready = round_.reported < made[round_.id] or len(own) > seen[round_.id]
            case "closed":
                is_ready = any(row.truth is not None for row in own)
            case _:
                is_ready = False
        if is_ready:
            ready.add(round_.id)
    return ready


def by_what_was_said(connection: Any) -> dict[int, int]:
    """By task how many annotators it lacks, from its labels."""
    words: dict[int, dict[str, str | None]] = {}
    for row in connection.execute(sa.select(labels).order_by(labels.c.id)):
        words.setdefault(row.task_id, {})[row.annotator] = row.truth
    return {
        row.id: lacking(words.get(row.id, {}), row.needs, row.confirm, lambda answer: answer != "1")
        for row in connection.execute(sa.select(tasks))
    }


def counted(store: Store) -> list[tuple[int, int, int]]:
    """By round: its drawn tasks, and those that are settled."""
    with store.read() as connection:
        lacks = by_what_was_said(connection)
        assert lacks == {row.id: row.lacks for row in connection.execute(sa.select(tasks.c.id, tasks.c.lacks))}
        drawn = connection.execute(sa.select(tasks.c.id, tasks.c.round_id).where(tasks.c.gold.is_(None))).all()
        ids = list(connection.scalars(sa.select(rounds.rounds.c.id).order_by(rounds.rounds.c.id)))
    own = {round_id: [row.id for row in drawn if row.round_id == round_id] for round_id in ids}
    return [(each, len(own[each]), sum(lacks[task_id] == 0 for task_id in own[each])) for each in ids]


def counters(store: Store) -> list[tuple[int, int, int]]:
    query = sa.select(rounds.rounds.c.id, rounds.rounds.c.asked, rounds.rounds.c.spoken)
    with store.read() as connection:
        return sorted(tuple(row) for row in connection.execute(query))


def marked(store: Store) -> set[int]:
    with store.read() as connection:
        found = [round_ for monitor in MONITORS for round_ in rounds.newest(connection, monitor, 100)]
    return {round_.id for round_ in found if round_.ready}


@pytest.mark.parametrize("seed", range(3))
def test_the_mark_is_what_looking_through_everything_says(store: Store, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(80):
        step(store, dice)
        assert marked(store) == by_looking_through_everything(store)
        assert counters(store) == counted(store)
    with store.read() as connection:
        names = readiness.monitors_with_work(connection, NOW)
        unfinished = {round_.id for name in MONITORS for round_ in rounds.unfinished(connection, name)}
        all_rounds = [round_ for name in MONITORS for round_ in rounds.newest(connection, name, 100)]
    assert names == {round_.monitor for round_ in all_rounds if round_.ready}
    assert unfinished == {
        round_.id for round_ in all_rounds if round_.ready or round_.state not in ("closed", "abandoned")
    }


def test_migrations_mark_and_count_what_is_there(store: Store) -> None:
    dice = random.Random(7)
    for _ in range(80):
        step(store, dice, plain=True)
    with store.write() as connection:  # none that was closed had to be told again then
        connection.execute(rounds.rounds.update().where(rounds.rounds.c.state == "closed").values(reported=1000))
    ready, counts = by_looking_through_everything(store), counted(store)
    with store.write() as connection:
        connection.execute(rounds.rounds.update().values(ready=False, asked=7, spoken=7))
        for name, statement in (("0002_ready_rounds", "_READY"), ("0008_counted_answers", "_COUNT")):
            migration = import_module(f"opmon.store.migrations.versions.{name}")
            connection.exec_driver_sql(getattr(migration, statement))
        estimated = set(connection.scalars(sa.select(rounds.rounds.c.id).where(rounds.rounds.c.state == "estimated")))
    assert counters(store) == counts
    assert marked(store) == ready | estimated, "those that are estimated are looked at once more"


def deliver(connection: Any, monitor: str, number: int, rule: str, at: datetime, state: str = "pending") -> None:
    key = f"{monitor}-{number}"
    body = {"id": key}
    round_id = connection.scalar(sa.text("SELECT min(id) FROM rounds"))
    event = {"id": key, "monitor": monitor, "round_id": round_id, "rule": rule, "type": "t", "body": body}
    connection.execute(events.insert().values(**event, created_at=NOW))
    connection.execute(deliveries.insert().values(event_id=key, action="hook", state=state, attempts=0, next_at=at))


def test_a_delivery_that_is_due_is_work_unless_one_before_it_is_not(store: Store) -> None:
    open_round(store, "digits")
    with store.write() as connection:
        deliver(connection, "digits", 1, "floor", NOW + timedelta(hours=1))
        deliver(connection, "digits", 2, "floor", NOW)  # a recovery waits for its alarm
        deliver(connection, "faces", 3, "floor", NOW)
        deliver(connection, "done", 4, "floor", NOW, "delivered")
    with store.read() as connection:
        assert readiness.monitors_with_work(connection, NOW) == {"faces"}
        assert readiness.monitors_with_work(connection, NOW + timedelta(hours=1)) == {"digits", "faces"}


def test_finding_out_reads_no_label(store: Store) -> None:
    """However many there are, the question costs what there is to do."""
    said: list[str] = []
    sa.event.listen(store.engine, "before_cursor_execute", lambda *call: said.append(call[2]))
    with store.read() as connection:
        readiness.monitors_with_work(connection, NOW)
    (question,) = [words for words in said if "SELECT" in words and "rounds" in words]
    assert "labels" not in question
    assert "tasks" not in question
    if store.is_sqlite:
        with store.read() as connection:
            compiled = sa.select(rounds.rounds.c.monitor).where(rounds.rounds.c.ready)
            plan = connection.execute(sa.text(f"EXPLAIN QUERY PLAN {compiled.compile(store.engine)}")).all()
        assert "ix_rounds_ready" in str(plan)
