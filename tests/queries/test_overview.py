"""A line for each monitor says what the views of each alone say, whatever became of it, on every database."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from opmon.quantities import ACCURACY
from opmon.queries.monitors import monitor_views
from opmon.queries.overview import SHOWN, overview
from opmon.queries.versions import version_views
from opmon.store import schema
from tests.benchmarks.aging import rows_read
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, monitor

NAMES = ("fresh", "calm", "sinking", "lately-provisional", "unknown-lately", "another-version", "it's; --")


def lived(database: str, folder: Path) -> World:
    rules = [FLOOR, {"type": "accuracy_below", "threshold": 0.5, "name": "deep"}]
    names = [name for name in NAMES if ";" not in name]
    made = World.of(database, folder, {name: monitor(classes=list(DIGITS), rules=rules) for name in names})
    live_through(
        made.store,
        *(Past(name, 2 * SHOWN, drop=0.4 if name == "sinking" else 0.0) for name in names if name != "fresh"),
    )
    with made.store.write() as connection:
        of = {
            name: sa.select(schema.rounds.c.id).where(schema.rounds.c.monitor == name, schema.rounds.c.number > least)
            for name, least in (("lately-provisional", 5), ("unknown-lately", 30), ("another-version", 2 * SHOWN - 2))
        }
        estimates, verdicts = schema.estimates, schema.verdicts
        connection.execute(
            estimates.update().where(estimates.c.round_id.in_(of["lately-provisional"])).values(provisional=True)
        )
        connection.execute(
            verdicts.update().where(verdicts.c.round_id.in_(of["unknown-lately"])).values(state="unknown")
        )
        connection.execute(
            schema.rounds.update().where(schema.rounds.c.id.in_(of["another-version"])).values(model_version="new")
        )
    return made


def test_lines_agree_with_views(database: str, tmp_path: Path) -> None:
    made = lived(database, tmp_path)
    watches = [settings.watch for settings in made.settings.monitors.values()]
    now = datetime.now(UTC)
    with made.store.read() as connection:
        lines, views = overview(connection, watches, now), monitor_views(connection, watches, now, shown=1)
        assert overview(connection, [], now) == []
        (odd,) = overview(connection, [type(watches[0])(NAMES[-1])], now)
    assert (odd.status, odd.rounds, odd.past) == ("unknown", 0, ())
    for line, view in zip(lines, views, strict=True):
        for name in ("name", "status", "why", "reasons", "rounds", "queue", "needs", "last_success_at", "next_at"):
            assert getattr(line, name) == getattr(view, name), (line.name, name)
        found = None if line.latest is None else (line.latest.round, line.latest.estimate)
        assert found == (None if view.latest is None else (view.latest.number, view.latest.estimate)), line.name
    by_name = {line.name: line for line in lines}
    assert by_name["lately-provisional"].latest is not None
    assert by_name["lately-provisional"].latest.round == 5
    assert [len(line.past) for line in lines] == [0, *[SHOWN - 1] * 5]


def test_versions_have_their_own_rounds(database: str, tmp_path: Path) -> None:
    made = lived(database, tmp_path)
    with made.store.read() as connection:
        found = version_views(connection, "another-version", ACCURACY)
        assert version_views(connection, "fresh", ACCURACY) == []
    assert [each.version for each in found] == ["new", "3", "2", "1"]
    assert found[0].first == found[0].last == 2 * SHOWN - 1
    assert all(each.estimate.low <= each.estimate.value <= each.estimate.high for each in found)


def test_an_overview_reads_no_more_of_an_old_monitor(tmp_path: Path, sqlite: str) -> None:
    made = World.of(sqlite, tmp_path, {name: monitor(rules=[FLOOR]) for name in ("young", "old")})
    live_through(made.store, Past("young", 2 * SHOWN, drop=0.0), Past("old", 20 * SHOWN, drop=0.0))
    read = {}
    for name in ("young", "old"):
        watch = made.settings.monitor(name).watch
        with rows_read(made.store) as count, made.store.read() as connection:
            overview(connection, [watch], datetime.now(UTC))
        read[name] = count[0]
    assert read["old"] == read["young"]
