"""Rounds long past lose their labels; what was found out from them stays, and nothing is read or counted twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from click.testing import CliRunner

from opmon.cli import group
from opmon.errors import InputError
from opmon.labels.queue import Answer, LabelQueue
from opmon.queries.monitors import monitor_view
from opmon.queries.period import period_view
from opmon.queries.rolling import rolling_whole
from opmon.queries.rounds import round_view
from opmon.queries.timeline import timeline
from opmon.stages.estimate import read_answers
from opmon.stages.rolled import MOST
from opmon.store import examining, positions, queue, revisions, rounds, verdicts
from opmon.store.schema import estimates, labels, slices, tallies, tasks
from opmon.store.schema import rounds as rounds_table
from opmon.types import Label
from opmon.web.failures import failures_of

PAST = {
    "keep": {"rounds": "90d"},
    "round": {"min_inputs": 200, "max_inputs": 200, "max_age": "30d"},
    "rolling": {"rounds": 2},
    "measures": ["balanced_accuracy"],
}


def told(monitor: Any, number: int) -> list[object]:
    """What is told of a round and of its monitor without its labels."""
    watch, now = monitor.settings.watch, monitor.clock()
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, watch.name, number)
        revision = revisions.latest_estimate(connection, round_.id)
        assert revision is not None
        period = period_view(connection, watch, monitor.settings.plans_from, 0.9, now - timedelta(days=3650), now)
        return [
            round_view(connection, watch, round_, now),
            rolling_whole(connection, watch.name, revision, rounds=2, within=None),
            timeline(connection, watch.name, watch.quantity, rounds=2, within=None),
            [verdicts.latest_of(connection, [round_.id])],
            (period.labels, period.points, period.raised),
        ]


def one_more(monitor: Any, workbench: Any, wrong: float = 0.1) -> None:
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, wrong=wrong)
    monitor.advance()


def say_late(monitor: Any, number: int, who: str) -> None:
    """Somebody else contradicts what was said first of the round."""
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, monitor.settings.name, number)
        first = queue.answers(connection, round_.id)[0]
    with monitor.store.write() as connection:
        wrong = str((int(first.truth or 0) + 1) % 10)
        queue.record(connection, [Label(first.task_id or 0, who, wrong, monitor.clock())], monitor.clock())
    assert monitor.advance().problems == []


def tallies_of(connection: Any, number: int) -> list[int]:
    """The revisions of a round of which the draws are kept."""
    own = estimates.join(rounds_table, rounds_table.c.id == estimates.c.round_id)
    query = sa.select(estimates.c.revision).select_from(own.join(tallies, tallies.c.estimate_id == estimates.c.id))
    return list(connection.scalars(query.where(rounds_table.c.number == number).order_by(estimates.c.revision)))


def test_so_many_rounds_are_joined_and_looked_back_on_as_are_kept() -> None:
    from opmon.config.monitor import JOINED, LOOKED_BACK
    from opmon.queries.drifting import LOOKED_BACK as DRIFT
    from opmon.stages import aims, expecting, proxies
    from opmon.store import checked, seen

    assert JOINED == MOST
    looks = DRIFT, expecting.ROUNDS, aims.ROUNDS, proxies.ROUNDS, checked.LATELY, seen.REMEMBERED_ROUNDS
    assert max(looks) == LOOKED_BACK


def test_old_rounds_lose_their_labels_and_go_on_telling(
    workbench: Any, sqlite: str, clock: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opmon.config.monitor.LOOKED_BACK", 2)  # else thirty rounds were to be made
    provider = {"type": "files", "path": str(workbench.folder / "labels"), "form": "csv"}
    monitor = workbench.monitor(sqlite, clock, **PAST, labels={"provider": provider})
    for wrong in (0.1, 0.6, 0.1, 0.1):
        one_more(monitor, workbench, wrong)
    for truth in ("x", "y"):  # late words: the estimate of round 2 has three revisions
        say_late(monitor, 2, truth)
    with monitor.store.read() as connection:
        assert tallies_of(connection, 2) == [0, 1, 2]
        old = connection.scalars(sa.select(tasks.c.id).order_by(tasks.c.id)).first()
        stood = positions.read(connection, workbench.name)
        asked = [rounds.get(connection, workbench.name, number).asked for number in range(1, 5)]
    clock.pass_(days=91)
    before = told(monitor, 2)

    said = monitor.prune(really=False)
    assert [each.round for each in said] == [1, 2, 3, 4]
    assert [each.kinds for each in said] == [("payloads", "rounds")] * 2 + [()] * 2
    assert [(each.emptied, each.labels) for each in said] == [
        (asked[0], asked[0]),
        (asked[1], asked[1] + 2),
        (0, 0),
        (0, 0),
    ]
    assert "look back" in said[2].stays
    assert told(monitor, 2) == before, "nothing went yet"
    assert monitor.prune(really=True) == said
    assert [each.kinds for each in monitor.prune(really=True)] == [(), ()]

    with monitor.store.read() as connection:
        kept = connection.scalars(sa.select(tasks.c.round_id).distinct()).all()
        covered = connection.scalars(sa.select(slices.c.round_id).distinct()).all()
        assert positions.read(connection, workbench.name) == stood
        assert tallies_of(connection, 2) == [0, 2], "the first final revision and the newest"
        round_ = rounds.get(connection, workbench.name, 2)
        assert failures_of(connection, monitor.settings, round_).labels_pruned_at == clock()
        with pytest.raises(InputError, match="labels were pruned on"):
            read_answers(connection, round_)
    assert set(kept) == set(covered) == {3, 4}
    assert list(examining.problems(monitor.store)) == []
    view, *others = told(monitor, 2)
    assert view.labels_pruned_at == clock()
    assert (view.estimate, view.measures, view.failures, view.verdicts, view.asked) == (
        before[0].estimate, before[0].measures, before[0].failures, before[0].verdicts, asked[1],
    )  # fmt: skip
    assert before[0].failure_groups[0].examples
    assert view.failure_groups == tuple(replace(each, examples=()) for each in before[0].failure_groups)
    assert others[:-1] == before[1:-1]
    assert others[-1] == before[-1], "a report tells the same of the past, labels saved among it"

    with monitor.store.write() as connection, pytest.raises(InputError, match=r"round 1 of .* labels were pruned on"):
        queue.record(connection, [Label(old or 0, "ann", "3", clock())], clock())
    late = f"t{old}-{'0' * 12}"
    refused = LabelQueue(monitor.store).answer("ann", [Answer(late, "3")]).refused
    assert "whose labels were pruned on" in refused[late]

    forgotten = monitor.erase_input("w1-7", really=False)
    assert (forgotten.found, "2 rounds up to 2" in forgotten.unknown) == ([], True)
    (workbench.folder / "labels" / workbench.name / "old.csv").write_text(f"task_key,label\n{late},3\n")
    cycle = monitor.advance()
    assert (cycle.opened, cycle.problems) == (0, []), "nothing is read again"
    assert "answers are not taken, of rounds whose labels were pruned; the first is of task t" in caplog.text
    one_more(monitor, workbench)
    with monitor.store.read() as connection:
        stands = monitor_view(connection, monitor.settings.watch, clock(), shown=5)
        newest = rounds.get(connection, workbench.name, 5)
    assert (newest.state, newest.received) == ("closed", 200)
    assert stands.latest is not None
    assert stands.latest.number == 5


def test_commands_say_what_went_and_refuse_late_labels(
    workbench: Any, sqlite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from datetime import UTC, datetime

    monkeypatch.setattr("opmon.config.monitor.LOOKED_BACK", 1)
    longest = {**PAST, "rolling": {"rounds": 1}}
    past = datetime.now(UTC) - timedelta(days=100)
    monitor = workbench.monitor(sqlite, lambda: past, **longest)
    for _ in range(2):
        one_more(monitor, workbench)
    with monitor.store.read() as connection:
        asked = rounds.get(connection, workbench.name, 1).asked
    monitor.store.close()
    path = workbench.write_yaml(sqlite, **longest)

    def run(*words: str) -> Any:
        return CliRunner().invoke(group, [*words, "--config", str(path)])

    dry = run("prune")
    assert "nothing was removed; opmon prune --yes does it" in dry.output
    assert "of 1 round would be removed" in dry.output
    assert f"with {asked} tasks and {asked} labels of 1 round, whose estimates stay" in dry.output
    assert "the labels of 1 round stay, old as they are: something that is configured may look back" in dry.output
    assert "nothing was removed" in dry.output
    assert f"{asked} labels of 1 round" in run("prune", "--yes").output
    shown = run("rounds", "show", "1").output
    assert "its labels were pruned on" in shown
    assert "accuracy" in shown
    assert "balanced accuracy" in shown
    file = tmp_path / "late.csv"
    file.write_text(f"monitor,round,input_id,label\n{workbench.name},1,w1-7,3\n{workbench.name},,w1-8,3\n")
    imported = run("labels", "import", str(file))
    assert isinstance(imported.exception, InputError)
    assert "line 2 is of input 'w1-7' in round 1 of" in str(imported.exception)
    assert str(imported.exception).count("labels were pruned on") == 2
    assert run("status").exit_code == 0
    assert run("db", "check").exit_code == 0


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({}, "labels.max_wait is 7d"),
        ({"labels": {"max_wait": "30d"}}, "labels.max_wait is 30d"),
        ({"rolling": {"within": "60d"}}, "rolling.within is 60d"),
        ({"rules": [{"type": "accuracy_below", "threshold": 0.9, "cooldown": "10d"}]}, "rules.0.cooldown is 10d"),
    ],
)
def test_labels_are_kept_as_long_as_anything_may_ask_for_them(keys: dict[str, Any], named: str) -> None:
    from opmon.config import Settings
    from opmon.errors import ConfigError

    one = yaml.safe_load("{model: 'models:/m@c', inputs: {features: [x]}, source: {path: log}, columns: {id: i}}")
    one |= {"sampler": {"type": "srs", "budget": 100}, **keys}

    def read(kept: str) -> Any:
        return Settings.from_mapping({"monitors": {"m": one | {"keep": {"rounds": kept}}}}, Path("/nowhere"))

    with pytest.raises(ConfigError, match=rf"(?s)keep\.rounds.*is 6d, and {named}"):
        read("6d")
    assert read("60d").monitor("m").keep.rounds == timedelta(days=60)


def test_labels_stay_while_anything_is_owed_of_them(database: str) -> None:
    """Open tasks, an estimate to be made, an event on its way, the newest task of all."""
    from opmon.store import emptying, erasing, outbox
    from opmon.store.emptying import Reach
    from opmon.store.engine import open_store
    from tests.labels.queued import NOW, asked, open_round

    store = open_store(database)
    ids = [open_round(store, asked(3), state="closed", closed_at=NOW) for _ in range(5)]
    reach = Reach(1, None, NOW + timedelta(days=9))

    def why() -> dict[int, str]:
        with store.read() as connection:
            return emptying.stays(connection, "digits", [1, 2, 3, 4, 5], reach)

    assert why().keys() == {1, 2, 3, 4, 5}
    assert "still open" in why()[1]
    assert "look back" in why()[5]
    with store.write() as connection:
        for round_id in ids[:3]:
            erasing.erase(connection, round_id, NOW)
        first = connection.scalars(sa.select(tasks.c.id).where(tasks.c.round_id == ids[1])).all()
        queue.record(connection, [Label(task, "ann", "1", NOW) for task in first], NOW)
        body = {"id": "e-1", "monitor": "digits", "rule": "floor", "type": outbox.ALARM}
        outbox.add(connection, ids[2], body, ["hook"], NOW)
    found = why()
    assert found.keys() == {2, 3, 4, 5}
    assert "still to be made" in found[2]
    assert "not delivered" in found[3]
    with store.write() as connection:
        round_ = rounds.get(connection, "digits", 2)
        assert not emptying.empty(connection, round_, NOW, {"a"}), "labels came meanwhile"
        assert connection.scalar(sa.select(sa.func.count()).where(labels.c.round_id == ids[1])) == 3
        assert emptying.empty(connection, rounds.get(connection, "digits", 1), NOW, {"a"})
        left = connection.scalars(sa.select(slices.c.round_id).order_by(slices.c.id)).all()
    assert left == ids[1:]
    assert [said for said in examining.problems(store) if "pruned" in said] == []


def test_who_answers_while_labels_are_pruned_is_waited_for_or_told(postgres: Any) -> None:
    """An answer that came first is kept, and the round with it; one that came second is refused in words."""
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event

    from opmon.store import emptying
    from opmon.store.engine import open_store
    from opmon.store.migrate import upgrade
    from tests.labels.queued import NOW, asked, open_round

    store = open_store(postgres())
    upgrade(store)
    for _ in range(2):
        open_round(store, asked(1), state="closed", closed_at=NOW)
    with store.read() as connection:
        first, second = connection.scalars(sa.select(tasks.c.id).order_by(tasks.c.id)).all()
    done, begun = Event(), Event()

    def answer(task: int, wait: bool) -> None:
        with store.write() as connection:
            queue.record(connection, [Label(task, "ann", "1", NOW)], NOW)
            begun.set()
            if wait:
                done.wait(0.3)

    def empty(number: int, wait: bool) -> bool:
        with store.write() as connection:
            gone = emptying.empty(connection, rounds.get(connection, "digits", number), NOW, {"a"})
            begun.set()
            if wait:
                done.wait(0.3)
            return gone

    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(answer, first, True)
        assert begun.wait(30)
        assert not empty(1, False)
        said.result()
        begun.clear()
        went = pool.submit(empty, 2, True)
        assert begun.wait(30)
        with pytest.raises(InputError, match="was of round 2 of digits, whose labels were pruned on"):
            answer(second, False)
        assert went.result()
    assert list(examining.problems(store)) == []
