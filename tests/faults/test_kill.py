"""Kill ``opmon run`` at random moments: afterwards everything is there once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.cli import LATER
from opmon.queries.rolling import rolling_points
from opmon.store import revisions, rounds, schema
from opmon.store.engine import Store
from tests.forked import forks

KILLS = int(os.environ.get("OPMON_TEST_KILLS", "20"))
"""Of each database; more take longer and meet the same states."""


def _run(config: str) -> None:
    from opmon.cli import main

    main(["-q", "run", "--json", "--config", config])


def _run_and_kill(config: Path, after: float | None) -> bool:
    """Run to the end, or for ``after`` seconds; true where it was killed."""
    process = forks().Process(target=_run, args=(str(config),))
    process.start()
    process.join(after)
    killed = process.is_alive()
    if killed:
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert killed or process.exitcode in (0, LATER), "later: on a busy machine MLflow may be too slow for one run"
    return killed


def _live(
    workbench: Any, database: str, kills: int, pace: tuple[float, float] = (1.0, 1.0), **changes: Any
) -> tuple[Any, Counter[str]]:
    """Rounds from the first input to the last label, with so many kills on the way.

    ``pace`` is how long a run takes undisturbed: one that opens a round, and one that closes it. It follows what the
    machine does meanwhile: a run that came to its end says how long one takes, one that was killed before it did
    anything says that it takes longer. Gives the states that the kills left rounds in.
    """
    config, dice = workbench.write_yaml(database, **changes), random.Random(7)
    monitor, met, takes = workbench.monitor(database, **changes), Counter[str](), list(pace)
    while kills:
        before = _states(monitor.store, workbench.name)
        kind = 1 if before else 0
        if not before and _count(monitor.store, workbench.name) == workbench.windows:
            workbench.write_window(seed=1)
        begun = time.monotonic()
        killed = _run_and_kill(config, dice.uniform(0.0, takes[kind]))
        after = _states(monitor.store, workbench.name)
        if not killed:
            takes[kind] = time.monotonic() - begun
        elif after == before:
            takes[kind] = min(1.2 * takes[kind], 60.0)
        kills -= killed
        met.update(set(after.values()) if killed else ())
        workbench.answer(monitor, skip=0.05, limit=dice.randint(0, 12))
    _finish(workbench, monitor, config)
    return monitor, met


def _pace(workbench: Any, database: str, **changes: Any) -> tuple[float, float]:
    """How long the two runs of an undisturbed round take: up to its tasks, and from its labels on."""
    config, monitor = workbench.write_yaml(database, **changes), workbench.monitor(database)
    _run_and_kill(config, None)  # the first process imports what the others share
    workbench.write_window(seed=1)
    taken = []
    for _ in range(2):
        begun = time.monotonic()
        _run_and_kill(config, None)
        taken.append(time.monotonic() - begun)
        workbench.answer(monitor, skip=0.05)
    return taken[0], taken[1]


def _finish(workbench: Any, monitor: Any, config: Path) -> None:
    for _ in range(20):
        _run_and_kill(config, None)
        workbench.answer(monitor, skip=0.05)
        if not _states(monitor.store, workbench.name):
            return
    raise AssertionError("rounds do not close")


def _states(store: Store, name: str) -> dict[int, str]:
    """The state of every round that is not at its end."""
    with store.read() as connection:
        return {round_.number: round_.state for round_ in rounds.unfinished(connection, name)}


def _count(store: Store, name: str) -> int:
    """How many rounds there were so far."""
    with store.read() as connection:
        newest = rounds.newest(connection, name, 1)
    return newest[0].number if newest else 0


def _facts(store: Store, name: str) -> dict[str, Any]:
    """What must be the same whatever happened on the way."""
    r, t, e = schema.rounds.c, schema.tasks.c, schema.estimates.c
    with store.read() as connection:
        final = revisions.latest_estimates(connection, name)
        return {
            "rounds": [
                tuple(row)
                for row in connection.execute(
                    sa.select(r.number, r.received, r.inputs, r.duplicates, r.state)
                    .where(r.monitor == name)
                    .order_by(r.number)
                )
            ],
            "slices": [
                (row.part, row.start.partition("@")[0], row.stop.partition("@")[0])
                for row in connection.execute(sa.select(schema.slices).order_by(schema.slices.c.id))
            ],
            "tasks": [
                tuple(row)
                for row in connection.execute(
                    sa.select(r.number, t.input_id, t.place)
                    .join(schema.rounds, r.id == t.round_id)
                    .order_by(r.number, t.place)
                )
            ],
            "estimates": [
                (f.round_number, f.estimate.value, f.estimate.low, f.estimate.high, f.estimate.n) for f in final
            ],
            "finals": connection.scalar(sa.select(sa.func.count()).where(~e.provisional)),
            "events": sorted((row.type, row.rule) for row in connection.execute(sa.select(schema.events))),
            "delivered": sorted(row.state for row in connection.execute(sa.select(schema.deliveries))),
        }


def _runs(monitor: Any, name: str) -> list[str]:
    client = monitor.registry._client
    experiment = client.get_experiment_by_name(f"opmon/{name}")
    found = client.search_runs([experiment.experiment_id])
    assert all(run.info.status == "FINISHED" for run in found if run.data.tags["opmon.kind"] == "round")
    return sorted(run.data.tags["opmon.key"].partition("/")[2].rpartition("/")[0] for run in found)


def _facts_as_if_undisturbed(
    workbench: Any, monitor: Any, calm: Any, calm_database: str, **changes: Any
) -> dict[str, Any]:
    """The facts of a life with kills, which must be those of the same life without."""
    for _ in range(workbench.windows - calm.windows):
        calm.write_window(seed=1)
    calm_monitor, _ = _live(calm, calm_database, 0, **changes)
    facts, undisturbed = _facts(monitor.store, workbench.name), _facts(calm_monitor.store, workbench.name)
    for what in undisturbed:
        assert facts[what] == undisturbed[what], what
    return facts


def _require_rolling(monitor: Any, name: str) -> None:
    """The newest that MLflow was told of each step is what the database says at the end, and one value is final."""
    with monitor.store.read() as connection:
        last = rounds.newest(connection, name, 1)[0]
        history = revisions.latest_estimates(connection, name)
    window = monitor.settings.rolling
    points = rolling_points(history, rounds=window.rounds, within=window.within)
    expected = {point.round_number: point.estimate.value for point in points}
    keys = ("accuracy/rolling", "accuracy/rolling_revised")
    first, revised = (monitor.registry.metric_history(last.timeline_run_id, key) for key in keys)
    assert len(first) == len({step for step, _, _ in first})
    assert {step: value for step, _, value in [*first, *revised]} == pytest.approx(expected)


@pytest.mark.timeout(1800)
def test_killed_at_random_moments_it_ends_as_if_undisturbed(workbench: Any, database: str, tmp_path: Path) -> None:
    calm = workbench.sibling(tmp_path / "calm")
    calm_database = f"sqlite:///{tmp_path / 'calm.db'}"
    pace = _pace(calm, calm_database)
    monitor, met = _live(workbench, database, KILLS, pace)
    windows = workbench.windows
    assert len(met) >= 2, f"the kills must hit the work, not only the waiting; they left {met}"

    facts = _facts_as_if_undisturbed(workbench, monitor, calm, calm_database)
    assert [row[1] for row in facts["rounds"]] == [200] * windows
    _require_rolling(monitor, workbench.name)
    keys = [f"round/{number}" for number in range(1, windows + 1)] + ["timeline/digits/1"]
    assert _runs(monitor, workbench.name) == sorted(keys)


@pytest.mark.timeout(1200)
def test_killed_while_a_sampler_looks_at_a_layer(workbench: Any, tmp_path: Path) -> None:
    ces = {"sampler": {"type": "ces", "budget": 40}}
    calm = workbench.sibling(tmp_path / "calm").with_network()
    workbench.with_network()
    databases = [f"sqlite:///{tmp_path / name}" for name in ("opmon.db", "calm.db")]
    pace = _pace(calm, databases[1], **ces)
    monitor, _ = _live(workbench, databases[0], 12, pace, **ces)
    facts = _facts_as_if_undisturbed(workbench, monitor, calm, databases[1], **ces)
    assert [row[2] for row in facts["rounds"]] == [200] * workbench.windows
    _require_rolling(monitor, workbench.name)
    assert list((workbench.folder / ".opmon" / "rounds").rglob("*.*")) == [], "nothing of the activations is left"
