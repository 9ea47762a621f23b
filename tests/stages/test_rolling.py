"""The last rounds together: told with each round, again where a late label changes them, never over two versions."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from opmon.cli import group
from opmon.config import Settings
from opmon.errors import ConfigError
from opmon.estimators.rolling import combine
from opmon.quantities import ACCURACY, MEAN_SQUARED_ERROR
from opmon.queries.rolling import rolling_as_of, rolling_points
from opmon.queries.timeline import timeline
from opmon.stages.points import estimate_points
from opmon.store import emptying, queue, revisions, rounds, schema, tallies
from opmon.store.revisions import Revision
from opmon.types import Estimate, Label

START = datetime(2026, 3, 1, tzinfo=UTC)


def estimates(monitor: Any) -> dict[int, Estimate]:
    with monitor.store.read() as connection:
        found = revisions.latest_estimates(connection, monitor.settings.name)
    return {entry.round_number: entry.estimate for entry in found}


def joined(monitor: Any, *numbers: int) -> Estimate:
    """Rounds as one, from the draws that were kept with their estimates."""
    with monitor.store.read() as connection:
        found = revisions.latest_estimates(connection, monitor.settings.name)
        kept = [entry for entry in found if entry.round_number in numbers]
        known = tallies.read(connection, [entry.key for entry in kept])
    return combine([entry.estimate for entry in kept], [known[entry.key] for entry in kept])


def told(monitor: Any, key: str = "accuracy/rolling", number: int = 1) -> list[tuple[int, float]]:
    """What the round's timeline holds, by step and moment."""
    with monitor.store.read() as connection:
        run = rounds.get(connection, monitor.settings.name, number).timeline_run_id
    return [(step, value) for step, _, value in monitor.registry.metric_history(run, key)]


def test_the_last_rounds_are_told_with_each_round(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, rolling={"rounds": 2}, sampler={"type": "srs", "budget": 40})
    workbench.live(monitor, 3, wrong=0.1)
    own = estimates(monitor)
    pairs = [joined(monitor, 1), joined(monitor, 1, 2), joined(monitor, 2, 3)]
    for key, bound in (("rolling", "value"), ("rolling_low", "low"), ("rolling_high", "high")):
        expected = [(number, pytest.approx(getattr(pair, bound))) for number, pair in enumerate(pairs, 1)]
        assert told(monitor, f"accuracy/{key}") == expected
    assert pairs[2].half_width < own[3].half_width


def test_rounds_from_before_draws_were_kept_are_joined_by_their_widths(workbench: Any, tmp_path: Path) -> None:
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "sups", "budget": 40})
    workbench.live(monitor, 2, wrong=0.1)
    narrower = joined(monitor, 1, 2)
    with monitor.store.write() as connection:
        connection.execute(schema.tallies.delete())
        newest = revisions.latest_estimates(connection, monitor.settings.name)[-1]
        point = rolling_as_of(connection, monitor.settings.name, newest, rounds=2, within=None)
    wider = combine(list(estimates(monitor).values()))
    assert point is not None
    assert point.estimate == wider
    assert narrower.half_width < wider.half_width


@pytest.mark.parametrize("main", ["recall", "auc"])
def test_a_main_measure_is_that_of_all_draws_and_not_the_mean_of_the_rounds(
    workbench: Any, tmp_path: Path, main: str
) -> None:
    """As it is where it stands beside the accuracy; the timeline, MLflow and the newest figure say the same."""
    measures = [{main: {"class": "8"}}]
    changes = {"classes": [str(digit) for digit in range(10)], "rules": [], "rolling": {"rounds": 2},
               "sampler": {"type": "srs", "budget": 60}}  # fmt: skip
    monitor = workbench.monitor(
        f"sqlite:///{tmp_path / 'main.db'}", **changes, measures=["accuracy", *measures], main=main
    )
    workbench.live(monitor, 3, wrong=0.2)
    own = estimates(monitor)
    name = monitor.settings.name
    with monitor.store.read() as connection:
        newest = revisions.latest_estimates(connection, name)[-1]
        point = rolling_as_of(connection, name, newest, rounds=2, within=None)
        line = timeline(connection, name, own[3].quantity, rounds=2, within=None)
        said = [queue.answers(connection, rounds.get(connection, name, number).id) for number in (2, 3)]
    assert point is not None
    assert point.rounds == (2, 3)
    assert point.estimate.quantity == own[3].quantity
    assert [each.rolling for each in line][2] == pytest.approx(point.estimate.value)
    assert told(monitor, f"{own[3].quantity.key}/rolling")[-1] == (3, pytest.approx(point.estimate.value))
    assert point.estimate.low < point.estimate.value <= point.estimate.high
    assert point.estimate.half_width < max(own[2].half_width, own[3].half_width)
    if main == "recall":
        of_class = [each for some in said for each in some if each.truth == "8"]
        assert point.estimate.value == pytest.approx(sum(each.prediction == "8" for each in of_class) / len(of_class))
        assert point.estimate.value != pytest.approx(combine([own[2], own[3]]).value)
    tell_again(monitor)
    assert told(monitor, f"{own[3].quantity.key}/rolling")[-1] == (3, pytest.approx(point.estimate.value))


def test_a_late_label_tells_the_windows_again_that_it_is_in(workbench: Any, database: str) -> None:
    monitor = workbench.monitor(database, rolling={"rounds": 2}, sampler={"type": "srs", "budget": 40})
    workbench.live(monitor, 3, skip=0.3)
    before = told(monitor)
    tell_again(monitor)
    assert told(monitor) == before
    with monitor.store.write() as connection:
        skipped = connection.execute(
            sa.select(schema.tasks)
            .join(schema.labels)
            .where(schema.labels.c.truth.is_(None))
            .order_by(schema.tasks.c.round_id)
        ).first()
        wrong = str((int(workbench.truth[skipped.input_id]) + 1) % 10)
        queue.record(connection, [Label(skipped.id, "ben", wrong, monitor.clock())], monitor.clock())
    monitor.advance()
    own = estimates(monitor)
    first, second = combine([own[1]]).value, combine([own[1], own[2]]).value
    assert told(monitor) == before, "one value a step"
    assert told(monitor, "accuracy/rolling_revised") == [(1, pytest.approx(first)), (2, pytest.approx(second))]
    tell_again(monitor)
    assert told(monitor) == before
    again = told(monitor, "accuracy/rolling_revised")
    assert dict(again) == pytest.approx({1: first, 2: second})
    tell_again(monitor)
    assert told(monitor, "accuracy/rolling_revised") == again, "telling twice is telling once"


@pytest.mark.parametrize(("database", "main"), [("sqlite", "recall"), ("postgresql", "auc")], indirect=["database"])
def test_a_late_label_tells_all_windows_of_a_main_measure_again(workbench: Any, database: str, main: str) -> None:
    """Also those before the newest one, where draws alone join the rounds; and also once older rounds are emptied."""
    changes = {"classes": [str(digit) for digit in range(10)], "rules": [], "rolling": {"rounds": 3},
               "sampler": {"type": "srs", "budget": 60}}  # fmt: skip
    measures = ["accuracy", {main: {"class": "8"}}]
    monitor = workbench.monitor(database, **changes, measures=measures, main=main)
    workbench.live(monitor, 5, wrong=0.2, skip=0.2)
    key, before = monitor.settings.quantity.key, rolling(monitor)
    with monitor.store.write() as connection:
        late_label(workbench, connection, monitor, 2)
    monitor.advance()
    after = rolling(monitor)
    assert {number for number in before if after[number] != before[number]} == {2, 3, 4}
    again = dict(told(monitor, f"{key}/rolling_revised"))
    assert again == {number: pytest.approx(after[number]) for number in (2, 3, 4)}
    if main == "recall":
        assert after[3] == pytest.approx(recall_of_8(monitor, 1, 2, 3))
        assert after[4] == pytest.approx(recall_of_8(monitor, 2, 3, 4))
    with monitor.store.write() as connection:
        late_label(workbench, connection, monitor, 4)
    monitor.advance()
    with monitor.store.write() as connection:
        emptying.empty(connection, rounds.get(connection, monitor.settings.name, 2), monitor.clock(), ())
    assert {number: rolling(monitor)[number] for number in (2, 3)} == {2: after[2], 3: after[3]}


def rolling(monitor: Any) -> dict[int, float]:
    settings = monitor.settings
    with monitor.store.read() as connection:
        line = timeline(connection, settings.name, settings.quantity, rounds=settings.rolling.rounds, within=None)
    return {point.round: point.rolling for point in line}


def late_label(workbench: Any, connection: Any, monitor: Any, number: int) -> None:
    """Somebody says after all what an input is: an 8, which the model did not say."""
    round_ = rounds.get(connection, monitor.settings.name, number)
    skipped = connection.execute(
        sa.select(schema.tasks)
        .join(schema.labels)
        .where(schema.labels.c.truth.is_(None), schema.tasks.c.round_id == round_.id, schema.tasks.c.prediction != "8")
    ).first()
    queue.record(connection, [Label(skipped.id, "ben", "8", monitor.clock())], monitor.clock())


def recall_of_8(monitor: Any, *numbers: int) -> float:
    """By hand, from the draws of rounds of one size."""
    true = right = 0.0
    for number in numbers:
        with monitor.store.read() as connection:
            said = queue.answers(connection, rounds.get(connection, monitor.settings.name, number).id)
        answered = [each for each in said if each.truth is not None]
        true += sum(each.truth == "8" for each in answered) / len(answered)
        right += sum(each.truth == each.prediction == "8" for each in answered) / len(answered)
    return right / true


def tell_again(monitor: Any) -> None:
    """As after a kill, just before the rounds were known to have been told."""
    with monitor.store.write() as connection:
        connection.execute(schema.rounds.update().values(state="estimated", reported=-1))
    assert monitor.advance().problems == []


def test_a_round_without_an_estimate_joins_when_it_gets_one(workbench: Any, sqlite: str, clock: Any) -> None:
    """Its late label pushes the oldest round out of the windows that come after."""
    changes = {"rolling": {"rounds": 2}, "labels": {"max_wait": "2d"}, "sampler": {"type": "srs", "budget": 40}}
    monitor = workbench.monitor(sqlite, clock, **changes)
    workbench.live(monitor, 1, wrong=0.2)
    workbench.write_window()
    monitor.advance()
    clock.pass_(days=3)
    monitor.advance()
    with monitor.store.read() as connection:
        late = {task.id: task for task in queue.open_tasks(connection, workbench.name)}
    workbench.write_window()
    monitor.advance()
    with monitor.store.read() as connection:
        tasks = [task for task in queue.open_tasks(connection, workbench.name) if task.id not in late]
    for some in (tasks, late.values()):
        with monitor.store.write() as connection:
            given = [Label(task.id, "ann", workbench.truth[task.input_id], clock()) for task in some]
            queue.record(connection, given, clock())
        monitor.advance()
    own = estimates(monitor)
    last = [told(monitor, f"accuracy/{key}")[-1] for key in ("rolling", "rolling_revised")]
    windows = combine([own[1], own[3]]), combine([own[2], own[3]])
    assert last == [(3, pytest.approx(both.value)) for both in windows]


def test_a_new_version_opens_a_new_window(workbench: Any, tmp_path: Path) -> None:
    own = workbench.sibling(tmp_path / "own")
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    monitor = own.monitor(database)
    own.live(monitor, 2)
    own.new_version()
    own.live(monitor, 1, wrong=0.3)
    known = estimates(monitor)
    assert told(monitor, number=3) == [(3, pytest.approx(known[3].value))]
    with monitor._at_work() as work, monitor.store.read() as connection:
        points = estimate_points(work, connection, ACCURACY)
    assert [point.rolling for point in points] == [
        pytest.approx(value) for value in (known[1].value, combine([known[1], known[2]]).value, known[3].value)
    ]


def test_status_tells_the_last_rounds(workbench: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    config = str(workbench.write_yaml(database, rolling={"rounds": 3}))
    monitor = workbench.monitor(database, rolling={"rounds": 3})
    workbench.live(monitor, 2)
    status = CliRunner().invoke(group, ["status", "-c", config, "--json"], standalone_mode=False)
    found = json.loads(status.output)["rolling"]
    both = joined(monitor, 1, 2)
    assert (found["rounds"], found["estimate"]["value"]) == ([1, 2], pytest.approx(both.value))
    shown = CliRunner().invoke(group, ["status", "-c", config], standalone_mode=False).output
    assert f"accuracy {ACCURACY.interval(both.value, both.low, both.high)} over the last 2 rounds" in shown


def revision(number: int, value: float, **changes: Any) -> Revision:
    base = Estimate(value, value - 0.1, value + 0.05, n=50, frame_size=1000, response=1.0, method="srs")
    return Revision(
        number, 0, replace(base, **changes), 5, 50, START, number, ("m", "1"), START + timedelta(days=number)
    )


def test_provisional_rounds_and_other_levels_are_left_out() -> None:
    history = [revision(1, 0.5, level=0.9), revision(2, 0.6), revision(3, 0.1, provisional=True), revision(4, 0.8)]
    points = rolling_points(history, rounds=5, within=None)
    assert [(point.round_number, point.rounds) for point in points] == [(1, (1,)), (2, (2,)), (4, (2, 4))]
    assert points[-1].estimate.value == pytest.approx(0.7)


def test_losses_are_joined_bound_by_bound() -> None:
    (_, shares), (_, losses) = (
        rolling_points(
            [revision(1, 0.6, quantity=quantity), revision(2, 0.8, quantity=quantity)], rounds=2, within=None
        )
        for quantity in (ACCURACY, MEAN_SQUARED_ERROR)
    )
    assert losses.estimate.value - losses.estimate.low == pytest.approx(0.05 * 2**0.5)
    assert shares.estimate.high - 0.7 > losses.estimate.high - 0.7 == pytest.approx(0.025 * 2**0.5)


def test_a_window_of_time_and_of_rounds() -> None:
    history = [revision(number, 0.5) for number in (1, 2, 6, 7, 8, 9)]
    days = timedelta(days=3)
    found = [rolling_points(history, rounds=rounds, within=days, since=9)[0].rounds for rounds in (None, 2)]
    assert found == [(6, 7, 8, 9), (8, 9)]


def test_a_window_of_nothing_is_refused(workbench: Any) -> None:
    with pytest.raises(ConfigError, match="rolling: must hold rounds"):
        Settings.from_mapping(workbench.configuration("sqlite:///x.db", rolling={}), workbench.folder)
