"""Accuracy before labels come, in a real monitor: told when a round is scored, kept as told, held against labels."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from click.testing import CliRunner

from opmon.cli import group
from opmon.quantities import ACCURACY
from opmon.queries.expected import foreseen
from opmon.queries.rounds import round_views
from opmon.store import rounds
from opmon.types.expected import Expected


def told(monitor: Any, number: int) -> Expected | None:
    with monitor.store.read() as connection:
        return Expected.of(rounds.get(connection, monitor.settings.name, number).expected)


def history(monitor: Any, key: str, number: int = 1) -> list[tuple[int, float]]:
    with monitor.store.read() as connection:
        run = rounds.get(connection, monitor.settings.name, number).timeline_run_id
    return [(step, value) for step, _, value in monitor.registry.metric_history(run, key)]


def test_a_round_is_told_before_its_labels_and_keeps_what_it_was_told(workbench: Any, sqlite: str) -> None:
    """Four rounds wait together; their labels come in another order than theirs, some after all others."""
    monitor = workbench.monitor(sqlite, sampler={"type": "adaptive", "budget": 40}, labels={"max_wait": "7d"})
    for _ in range(4):
        workbench.write_window()
        assert monitor.advance().problems == []
    first = [told(monitor, number) for number in range(1, 5)]
    assert all(one is not None and one.rounds == () for one in first), "no label of any round has come"
    assert "scores alone" in first[0].notes[0]
    for number in (3, 1, 4):  # the labels of rounds come in this order; some rounds are drawn in two waves
        for _ in range(3):
            workbench.answer(monitor, only=number)
            monitor.advance()
    workbench.write_window()
    assert monitor.advance().problems == []
    fifth = told(monitor, 5)
    assert fifth is not None
    assert fifth.rounds == (1, 3, 4), "in the order of rounds"
    assert fifth.labels == 120
    assert fifth.low <= workbench.true_accuracy(monitor, 5) <= fifth.high
    assert fifth.high - fifth.low < first[0].high - first[0].low, "labels make it surer"
    assert any("off by" in note and "over 3 rounds" in note for note in fifth.notes)
    workbench.answer(monitor, only=2)
    monitor.advance()
    assert [told(monitor, number) for number in range(1, 5)] == first, "what was told stays as it was told"
    assert told(monitor, 5) == fifth
    steps = history(monitor, "accuracy/expected")
    assert [step for step, _ in steps] == [1, 2, 3, 4, 5], "one value a step"
    assert dict(steps)[5] == fifth.value
    assert dict(history(monitor, "accuracy/expected_low"))[5] == fifth.low
    with monitor.store.read() as connection:
        ahead = foreseen(connection, monitor.settings.name, ACCURACY)
        (view,) = round_views(
            connection, [(monitor.settings.watch, [rounds.get(connection, workbench.name, 5)])], datetime.now(UTC)
        )[0]
    assert [point.round for point in ahead.waiting] in ([5], [2, 5])
    assert ahead.record is not None
    assert ahead.record.rounds >= 3
    assert view.expected is not None
    assert view.expected.name == "expected accuracy"
    assert view.estimate is None


def test_the_command_line_says_that_it_is_expected(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, sampler={"type": "srs", "budget": 40})
    path = str(workbench.write_yaml(sqlite, sampler={"type": "srs", "budget": 40}))
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor)
    monitor.advance()
    workbench.write_window()
    monitor.advance()
    runner = CliRunner()
    said = runner.invoke(group, ["status", "-c", path], catch_exceptions=False).output
    assert "expected accuracy" in said
    assert "in round 2, before its labels" in said
    assert "Where labels have come, such predictions were off by" in said.replace("\n", " ")
    (view,) = [
        json.loads(line)
        for line in [runner.invoke(group, ["status", "-c", path, "--json"], catch_exceptions=False).output]
    ]
    assert view["foreseen"]["waiting"][0]["round"] == 2
    assert view["foreseen"]["record"]["rounds"] == 1
    shown = runner.invoke(group, ["rounds", "show", "2", "-c", path], catch_exceptions=False).output
    assert "told before its labels" in shown
    assert "corrected by the 40 labels of round 1" in " ".join(shown.split())


def test_a_round_counts_from_half_of_its_labels_on(workbench: Any, sqlite: str) -> None:
    """A few tasks that nobody answers would else hold up all that is told for as long as they may wait."""
    monitor = workbench.monitor(sqlite, sampler={"type": "srs", "budget": 40}, labels={"max_wait": "7d"})
    for _ in range(2):
        workbench.write_window()
        assert monitor.advance().problems == []
        found = told(monitor, workbench.windows)
        assert found is not None
        assert found.rounds == ()
        workbench.answer(monitor, only=1, limit=15)
        assert monitor.advance().closed == 0
    workbench.write_window()
    assert monitor.advance().problems == []
    found = told(monitor, 3)
    assert found is not None
    assert (found.rounds, found.labels) == ((1,), 30)
    assert not any("off by" in note for note in found.notes), "an estimate that is not final is held against nothing"


def test_it_can_be_switched_off(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, estimate={"before_labels": False})
    workbench.write_window()
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        assert rounds.get(connection, workbench.name, 1).expected is None
    assert history(monitor, "accuracy/expected") == []


def test_a_measure_that_is_no_mean_is_not_told_and_says_why(workbench: Any, sqlite: str) -> None:
    main = {"measures": ["balanced_accuracy"], "main": "balanced_accuracy", "rules": []}
    monitor = workbench.monitor(sqlite, sampler={"type": "srs", "budget": 40}, **main)
    workbench.live(monitor, 2)
    with monitor.store.read() as connection:
        kept = [rounds.get(connection, workbench.name, number).expected for number in (1, 2)]
    assert "no round of this model version" in kept[0]["why"]
    assert "no mean over all inputs" in kept[1]["why"]


def test_a_drift_that_scores_do_not_show_is_followed_by_labels(workbench: Any, sqlite: str) -> None:
    """Annotators say of more and more inputs that the model is wrong: its scores stay as they are."""
    monitor = workbench.monitor(sqlite, sampler={"type": "srs", "budget": 80})
    for _ in range(5):
        workbench.write_window()
        assert monitor.advance().problems == []
        workbench.answer(monitor, wrong=0.4)
        assert monitor.advance().closed == 1
    workbench.write_window()
    assert monitor.advance().problems == []
    before, after = told(monitor, 1), told(monitor, 6)
    assert before is not None
    assert after is not None
    assert after.value < before.value - 0.2
    assert after.low < 0.6 < after.high
