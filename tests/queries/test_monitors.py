"""A monitor as it is shown: how it stands and why, what it costs, when it worked, and what needs a person."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from opmon.cli import group
from opmon.queries.events import newest_events
from opmon.queries.monitors import MonitorView, monitor_view, monitor_views
from opmon.queries.plain import plain
from opmon.store import outbox, ticks

RULES = [
    {"type": "accuracy_below", "threshold": 0.999, "name": "floor", "certainty": "estimate"},
    {"type": "accuracy_below", "threshold": 0.9999, "name": "hint", "certainty": "estimate", "mode": "advise"},
]


def view_of(monitor: Any, shown: int = 5) -> MonitorView:
    with monitor.store.read() as connection:
        return monitor_view(connection, monitor.settings.watch, monitor.clock(), shown=shown)


def needs(view: MonitorView) -> list[tuple[str, int | None]]:
    return [(need.kind, need.round) for need in view.needs]


def test_a_monitor_from_its_first_day_to_an_alarm(workbench: Any, database: str, clock: Any) -> None:
    monitor = workbench.monitor(database, clock, rules=RULES, actions=[])
    fresh = view_of(monitor)
    assert (fresh.status, fresh.why) == ("unknown", "no round has a final estimate yet")
    assert (fresh.rounds, fresh.latest, fresh.last_success_at, fresh.next_at) == (0, None, None, None)
    assert fresh.needs == ()

    workbench.write_window()
    monitor.advance()
    waiting = view_of(monitor)
    assert waiting.last_success_at == clock()
    assert needs(waiting) == [("labels", None)]
    assert f"{waiting.queue.open} tasks of round 1 wait for annotators" == waiting.needs[0].message
    assert waiting.queue.due_at == clock() + monitor.settings.labels.max_wait
    assert (waiting.queue.asked, waiting.queue.spoken) == (waiting.newest[0].asked, 0)

    workbench.answer(monitor, wrong=0.3)
    clock.pass_(hours=1)
    monitor.advance()
    alarmed = view_of(monitor)
    assert alarmed.status == "degraded"
    (reason,) = alarmed.reasons
    assert (reason.rule, reason.state, reason.round) == ("floor", "alarm", 1)
    assert alarmed.why == f"an alarm stands; floor in round 1: {reason.message}"
    assert alarmed.latest == alarmed.newest[0]
    assert alarmed.latest is not None
    assert [(each.rule, each.advice) for each in alarmed.latest.verdicts] == [("floor", False), ("hint", True)]
    assert (alarmed.queue.open, alarmed.queue.due_at, alarmed.queue.spoken) == (0, None, waiting.queue.asked)
    assert needs(alarmed) == [("alarm", 1)]

    with monitor.store.write() as connection:
        (event,) = [each for each in newest_events(connection) if each.type == outbox.ALARM]
        assert (event.round, event.message) == (1, reason.message)
        outbox.acknowledge(connection, event.id, "ben", None, clock())
        ticks.claim(connection, workbench.name, clock(), None)
    assert alarmed.needs[0].event == event.id
    taken_on = view_of(monitor, shown=0)
    assert (taken_on.needs, taken_on.newest, taken_on.status) == ((), (), "degraded")
    assert taken_on.latest == alarmed.latest
    assert taken_on.next_at == clock() + timedelta(minutes=10)
    told = json.loads(json.dumps(plain(alarmed)))
    assert told["latest"]["estimate"]["quantity"] == "accuracy"
    assert told["reasons"] == [plain(reason)]


def test_an_event_that_is_not_taken_needs_a_person_while_it_is_tried_again(
    workbench: Any, database: str, clock: Any
) -> None:
    """A program that is missing stands for whatever an action cannot reach."""
    gone = {"type": "command", "argv": ["/no/such/program"], "name": "pager"}
    monitor = workbench.monitor(database, clock, rules=RULES[:1], actions=[gone])
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, wrong=0.3)
    monitor.advance()
    assert needs(view_of(monitor)) == [("alarm", 1)], "one refusal may be nothing"
    for _ in range(3):
        clock.pass_(hours=1)
        monitor.advance()
    _, told = view_of(monitor).needs
    assert told.kind == "delivery"
    assert told.message.startswith("pager was not told of an event (/no/such/program cannot be started")
    assert "; tried 4 times, again at " in told.message
    assert told.message.endswith(f" UTC; to try at once: opmon events replay {told.event}")
    for _ in range(50):
        clock.pass_(hours=7)
        monitor.advance()
    _, told = view_of(monitor).needs
    assert told.message.endswith(f"; to try again: opmon events replay {told.event}"), "it is given up, and still told"
    assert "tried" not in told.problem


def test_what_keeps_a_monitor_from_its_log_needs_a_person(workbench: Any, tmp_path: Path, clock: Any) -> None:
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", clock)
    workbench.write_window()
    monitor.advance()
    began = clock()
    shutil.move(tmp_path / "production", tmp_path / "elsewhere")
    clock.pass_(hours=1)
    assert len(monitor.advance().problems) == 1
    found = view_of(monitor)
    assert found.last_success_at == began
    assert needs(found) == [("cycle", None), ("labels", None)]
    assert "there is no file or folder" in found.needs[0].message
    monitor.advance(open_new=False)
    assert view_of(monitor).needs == found.needs, "labels alone say nothing of the log"
    shutil.move(tmp_path / "elsewhere", tmp_path / "production")
    monitor.advance()
    found = view_of(monitor)
    assert (found.last_success_at, needs(found)) == (clock(), [("labels", None)])


@pytest.mark.parametrize("count", [2, 12])
def test_many_monitors_have_a_line_each(workbench: Any, tmp_path: Path, count: int) -> None:
    plan = workbench.configuration(f"sqlite:///{tmp_path / 'opmon.db'}")
    (monitor,) = plan["monitors"].values()
    plan["monitors"] = {f"m{number:02}": monitor for number in range(count)}
    config = tmp_path / "opmon.yaml"
    config.write_text(yaml.safe_dump(plan))
    shown = CliRunner().invoke(group, ["status", "-c", str(config)], standalone_mode=False).output.splitlines()
    assert len([line for line in shown if line.strip()]) == (1 + count if count > 10 else 2 * count)
    told = CliRunner().invoke(group, ["status", "-c", str(config), "--json"], standalone_mode=False).output
    assert [json.loads(line)["name"] for line in told.splitlines()] == list(plan["monitors"])


def test_views_of_many_are_those_of_each(workbench: Any, database: str) -> None:
    monitor = workbench.monitor(database)
    workbench.write_window()
    monitor.advance()
    watches = [monitor.settings.model_copy(update={"name": name}).watch for name in ("nobody", workbench.name)]
    with monitor.store.read() as connection:
        views = monitor_views(connection, watches, monitor.clock(), shown=3)
        alone = [monitor_view(connection, watch, monitor.clock(), shown=3) for watch in watches]
    assert views == alone
    assert [view.rounds for view in views] == [0, 1]
