"""``opmon report`` as users run it, on a database with a past."""

from __future__ import annotations

import contextlib
import io
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from opmon.cli import WRONG, main
from opmon.cli.report import default_name
from opmon.quantities import ACCURACY, Quantity
from opmon.queries.planning import Known
from opmon.queries.savings import labels_of
from opmon.samplers.planning import plan
from opmon.store import revisions, schema
from opmon.store.engine import Store, open_store
from tests.made_once import new_opmon_database
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, monitor

NASTY = '<script>alert("x")</script>&amp;'


def opmon(*arguments: str) -> tuple[int, str, str]:
    """What ``opmon`` prints and how it ends, errors and all."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Store]:
    """A monitor with sixty daily rounds, the last ones of which alarm, and one that is new; its configuration."""
    database = new_opmon_database(tmp_path / "opmon.db")
    rules = [{**FLOOR, "name": NASTY}]
    monitors = {"sinking": monitor(classes=list(DIGITS), rules=rules), "fresh": monitor(classes=list(DIGITS))}
    for each in monitors.values():
        each["source"] = {"type": "files", **each["source"]}
    config = tmp_path / "opmon.yaml"
    config.write_text(yaml.safe_dump({"database": database, "monitors": monitors}))
    store = open_store(database)
    live_through(store, Past("sinking", 60, drop=0.4, rule=NASTY, model=f"digits{NASTY}"))
    with store.write() as connection:
        connection.execute(schema.estimates.update().values(method="adaptive/score"))
    monkeypatch.chdir(tmp_path)
    return str(config), store


def change(store: Store, statement: Any) -> None:
    with store.write() as connection:
        connection.execute(statement)


class Asks(HTMLParser):
    """What a page would ask others for, and the elements that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.elements: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]


def test_the_file_tells_all_and_asks_nobody(world: tuple[str, Store]) -> None:
    code, out, err = opmon("report", "sinking", "-c", world[0])
    assert (code, err) == (0, "")
    assert out.startswith("wrote sinking-report.html: 3")
    text = Path("sinking-report.html").read_text()
    page = Asks(text)
    assert page.addresses == []
    assert "script" not in page.elements
    assert not re.search(r"url\(|@import|https?://(?!hooks\.example\.com)", text)
    for heading in ("Why it is degraded", "What needs a person now", "Labels spent and saved", "Alarms, and what came"):
        assert heading in text
    assert 'class="chart"' in text
    assert "nobody has taken on the alarm" in text.lower()
    assert "https://hooks.example.com answered 500" in text
    assert "Nobody has taken" in text


def test_hostile_names_stay_text(world: tuple[str, Store]) -> None:
    text = opmon("report", "sinking", "-c", world[0], "-o", "-")[1]
    assert NASTY not in text
    assert "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;&amp;amp;" in text
    assert default_name(f"../{NASTY}") == "script_alert_x_script_amp-report.html"


def test_since_bounds_rounds_and_alarms(world: tuple[str, Store]) -> None:
    def told(since: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(opmon("report", "sinking", "-c", world[0], "--since", since, "--json")[1])
        return found

    day = (datetime.now(UTC) - timedelta(days=3, hours=1)).isoformat()
    few, most, by_date = told("3.5d"), told("1y"), told(day)
    assert [each["number"] for each in few["rounds"]] == [60, 59, 58, 57] == [e["number"] for e in by_date["rounds"]]
    assert len(most["rounds"]) == 60
    assert [point["round"] for point in few["points"]] == [57, 58, 59]
    assert len(most["raised"]) == len(few["raised"])  # those from before it still stand
    assert all(each["outcome"] == "stands" for each in most["raised"])
    assert few["labels"]["spent"] == 3 * 60 + 12


def test_a_time_with_several_versions_tells_them_apart(world: tuple[str, Store]) -> None:
    """Each over its own rounds of that time, and which of two neighbours is better."""

    def told(since: str) -> str:
        return opmon("report", "sinking", "-c", world[0], "--since", since, "-o", "-")[1]

    both = told("25d")
    assert "Model versions of this time" in both
    assert "Version 3 is" in both or "The labels do not tell versions 2 and 3 apart" in both
    assert "versions 1 and 2" not in both
    assert "Model versions of this time" not in told("9d"), "one version alone is that of all that is told"
    listed = json.loads(opmon("report", "sinking", "-c", world[0], "--since", "25d", "--json")[1])
    first = listed["rounds"][-1]["number"]
    assert [(each["version"], each["first"]) for each in listed["versions"]] == [("3", 41), ("2", first)]


def test_what_recovered_before_is_not_told(world: tuple[str, Store]) -> None:
    config, store = world
    ended = datetime.now(UTC) - timedelta(days=2, hours=12)
    body = {"id": "end", "monitor": "sinking", "round": 57, "rule": NASTY, "type": "opmon.recovered", "message": "up"}
    own = {"id": "end", "monitor": "sinking", "rule": NASTY, "type": "opmon.recovered", "created_at": ended}
    change(store, schema.events.insert().values(body=body, **own))
    change(store, schema.events.update().where(schema.events.c.id == "sinking-56").values(
        acknowledged_at=ended, acknowledged_by="kim", note="retrained"))  # fmt: skip
    raised = json.loads(opmon("report", "sinking", "-c", config, "--json")[1])["raised"]
    outcomes = {each["event"]["round"]: each["outcome"] for each in raised}
    assert outcomes[56] == "recovered"
    assert outcomes[59] == "stands"
    late = json.loads(opmon("report", "sinking", "-c", config, "--since", "1.5d", "--json")[1])["raised"]
    assert 56 not in {each["event"]["round"] for each in late}
    text = opmon("report", "sinking", "-c", config, "-o", "-")[1]
    assert "Taken on by kim" in text
    assert "retrained" in text


def test_labels_saved_are_those_of_a_plan(world: tuple[str, Store]) -> None:
    """Each interval made half as wide, simple random sampling needs what ``opmon plan`` says for that width."""
    config, store = world
    found = schema.estimates.c
    change(
        store, schema.estimates.update().values(low=(found.value + found.low) / 2, high=(found.value + found.high) / 2)
    )
    told = json.loads(opmon("report", "sinking", "-c", config, "--json")[1])
    with store.read() as connection:
        estimates = [each.estimate for each in revisions.latest_estimates(connection, "sinking")][
            -told["labels"]["rounds"] :
        ]
    needed = [plan(each.half_width, 1000, accuracy=each.value, variables=0).plain_budget for each in estimates]
    assert told["labels"]["plain"] == sum(needed)
    assert told["saved"] == sum(needed) - 60 * len(needed) > 60 * len(needed)
    assert told["labels"]["left_out"] == {"the estimate is not final yet": 1}
    assert f"{told['saved']:,} saved (" in opmon("report", "sinking", "-c", config, "-o", "-")[1]


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (Known(Quantity("mean squared error", "€²")), "another quantity was estimated than is now"),
        (Known(ACCURACY, main="accuracy"), "the labels do not tell how much inputs differ in accuracy"),
    ],
)
def test_what_cannot_be_compared_is_said(world: tuple[str, Store], known: Known, why: str) -> None:
    from opmon.queries.rounds import round_views
    from opmon.queries.watch import Watch
    from opmon.store import rounds

    with world[1].read() as connection:
        some = rounds.newest(connection, "sinking", 3)
        views = round_views(connection, [(Watch("sinking"), some)], datetime.now(UTC))[0]
    found = labels_of(views, 0, known, {})
    assert found.rounds == found.plain == 0
    assert any(why in each for each in found.left_out)


def test_a_simple_random_sample_saves_nothing(world: tuple[str, Store]) -> None:
    change(world[1], schema.estimates.update().values(method="srs"))
    told = json.loads(opmon("report", "sinking", "-c", world[0], "--json")[1])
    assert told["saved"] == 0
    assert told["labels"]["plain"] == told["labels"]["taken"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody",), "sinking"),
        ((), "say which monitor: fresh, sinking"),
        (("fresh",), "has opened no round yet"),
        (("sinking", "--since", "soon"), "such as 30d"),
        (("sinking", "--since", "9999y"), "must be longer than 0s and at most 3660d"),
        (("sinking", "--since", "2999-01-01"), "lies in the past"),
        (("sinking", "--json", "-o", "x"), "give one of them"),
        (("sinking", "-o", "nowhere/x.html"), "there is no folder nowhere"),
    ],
)
def test_errors_name_the_next_step(world: tuple[str, Store], arguments: tuple[str, ...], said: str) -> None:
    code, out, err = opmon("report", *arguments, "-c", world[0])
    assert (code, out) == (WRONG, "")
    assert said in err


def test_a_month_without_rounds_is_a_report_too(world: tuple[str, Store]) -> None:
    """Whoever is mailed one each month must learn that nothing came."""
    config, store = world
    last = datetime.now(UTC) - timedelta(days=2)
    change(store, schema.rounds.update().values(ends_at=last))
    code, out, _ = opmon("report", "sinking", "-c", config, "--since", "1h")
    assert code == 0
    said = f"No round ended in this time. The newest, round 60, is of {last:%d %b %Y}."
    assert said in out
    text = Path("sinking-report.html").read_text()
    assert said in text
    assert "What needs a person now" in text
    told = json.loads(opmon("report", "sinking", "-c", config, "--since", "1h", "--json")[1])
    assert (told["rounds"], told["points"], told["labels"]["spent"]) == ([], [], 0)


def test_only_a_report_is_replaced(world: tuple[str, Store]) -> None:
    file = Path("mine.html")
    file.write_text("<p>mine</p>")
    code, _, err = opmon("report", "sinking", "-c", world[0], "-o", str(file))
    assert code == WRONG
    assert "--force" in err
    assert file.read_text() == "<p>mine</p>"
    assert opmon("report", "sinking", "-c", world[0], "-o", str(file), "--force")[0] == 0
    assert opmon("report", "sinking", "-c", world[0], "-o", str(file))[0] == 0
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert not list(Path().glob(".mine*"))
