"""What pages say where nothing runs, nothing is known, or nothing needs anybody."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from opmon.binding import bound
from opmon.store import grouped, outbox, revisions, schema, truths
from opmon.types.grouped import FailureGroup
from tests.made_once import new_opmon_database
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, monitor

Pages = Callable[[World, str], str]
ROUND = schema.rounds.c


@pytest.fixture
def page_of() -> Pages:
    def read(world: World, path: str) -> str:
        with (
            world.served() as server,
            httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as client,
        ):
            return bound(client.get(path).raise_for_status().text)

    return read


def lived(folder: Path, past: Past, **keys: object) -> World:
    made = World.of(new_opmon_database(folder / "opmon.db"), folder, {past.monitor: monitor(**keys)})
    live_through(made.store, past)
    return made


def test_truths_that_could_not_be_taken_are_told_with_the_reason(tmp_path: Path, page_of: Pages) -> None:
    made = lived(tmp_path, Past("calm", 4, drop=0.0), classes=list(DIGITS), rules=[FLOOR])
    refused = {"'<b>' is none of the classes": 3}
    with made.store.write() as connection:
        truths.note(connection, "calm", truths.Read(datetime.now(UTC), taken=7, refused=refused))
    assert "3 rows could not be taken: &#39;&lt;b&gt;&#39; is none of the classes (3)" in page_of(
        made, "/monitors/calm"
    )


@pytest.mark.parametrize("path", ["/monitors/calm", "/monitors/calm/rounds/4"])
def test_a_deadline_that_is_over_is_told_so(tmp_path: Path, page_of: Pages, path: str) -> None:
    """A round waits for the next run, not until a day of last week."""
    made = lived(tmp_path, Past("calm", 4, drop=0.0), classes=list(DIGITS), rules=[FLOOR])
    assert "until <time" in page_of(made, path)
    over = datetime.now(UTC) - timedelta(days=3)
    with made.store.write() as connection:
        connection.execute(schema.rounds.update().where(ROUND.state == "labelling").values(deadline_at=over))
    told = page_of(made, path)
    assert "until <time" not in told
    assert "</time>: the next run goes on with what there is" in told


def test_a_recovery_needs_nobody(tmp_path: Path, page_of: Pages) -> None:
    made = lived(tmp_path, Past("sinking", 12, drop=0.5, delivered=True), classes=list(DIGITS), rules=[FLOOR])
    assert page_of(made, "/monitors/sinking").count("Take it on</button>") == 1
    with made.store.write() as connection:
        connection.execute(schema.events.update().values(type="opmon.recovered"))
    told = page_of(made, "/monitors/sinking")
    assert 'class="status recovered"' in told
    assert "Take it on</button>" not in told


def test_an_event_before_the_first_round_links_to_none(tmp_path: Path, page_of: Pages) -> None:
    made = World.of(new_opmon_database(tmp_path / "opmon.db"), tmp_path, {"mute": monitor(classes=list(DIGITS))})
    about = {"id": "mute-1", "type": outbox.SILENT, "monitor": "mute", "rule": outbox.SILENCE, "round": None}
    with made.store.write() as connection:
        outbox.add(connection, None, {**about, "message": "no cycle has ended yet"}, [], datetime.now(UTC))
    told = page_of(made, "/monitors/mute").partition('<ul class="events">')[2].partition("</ul>")[0]
    assert "no cycle has ended yet" in told
    assert "None" not in told
    assert "/rounds/" not in told


def test_large_errors_are_no_failures(tmp_path: Path, page_of: Pages) -> None:
    past = Past("prices", 5, classes=(), unit="€", problem="regression", waits=False, rule=None)
    made = lived(tmp_path, past, problem="regression", unit="€")
    with made.store.write() as connection:
        latest = revisions.newest_final(connection, "prices")
        assert latest is not None
        grouped.put(connection, latest.key, [FailureGroup("rest", (), 3)])
    for path in ("/monitors/prices", "/monitors/prices/rounds/5"):
        told = page_of(made, path)
        assert "Largest errors" in told
        assert re.search(r"The (\d\s)?largest errors? of\s60\slabelled inputs", told)
        assert "What it got wrong" not in told
        assert "these large errors have in common" in told


def test_a_round_that_asks_nobody_has_no_share_of_labels(tmp_path: Path, page_of: Pages) -> None:
    made = lived(tmp_path, Past("calm", 4, drop=0.0), classes=list(DIGITS), rules=[FLOOR])
    with made.store.write() as connection:
        last = sa.and_(ROUND.monitor == "calm", ROUND.number == 4)
        connection.execute(schema.rounds.update().where(last).values(state="opened", asked=0, spoken=0))
    assert bound("0 of 0") not in page_of(made, "/monitors/calm/rounds")


def test_a_monitor_without_rounds_says_what_to_do(tmp_path: Path, page_of: Pages) -> None:
    made = World.of(new_opmon_database(tmp_path / "opmon.db"), tmp_path, {"fresh": monitor(classes=list(DIGITS))})
    assert "opmon check -m fresh" in page_of(made, "/monitors/fresh")
    now = datetime.now(UTC)
    with made.store.write() as connection:
        connection.execute(schema.cycles.insert().values(monitor="fresh", at=now, succeeded_at=now, problem=None))
    told = page_of(made, "/monitors/fresh")
    assert bound("as soon as there are 1,000 inputs, or with fewer once the oldest has waited for 1h") in told
