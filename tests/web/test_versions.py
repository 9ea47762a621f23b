"""Model versions side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from opmon.queries.versions import COMBINED
from opmon.web.server import Server
from tests.made_once import new_opmon_database
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, monitor

Clients = Callable[..., httpx.Client]
API = "/api/v1/monitors"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Of one the last version is worse; of the other all are alike."""
    folder = tmp_path_factory.mktemp("world")
    names = {name: monitor(classes=list(DIGITS), rules=[FLOOR]) for name in ("worse", "alike", "fresh")}
    made = World.of(new_opmon_database(folder / "opmon.db"), folder, names)
    live_through(
        made.store,
        Past("worse", 60, versions=10, drop=0.3, waits=False),
        Past("alike", 60, versions=2, drop=0.0, waits=False),
    )
    return made


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Server]:
    with world.served() as server:
        yield server


def test_versions_are_told_newest_first(client_of: Clients) -> None:
    told = client_of(name="olga").get(f"{API}/worse/versions").json()["versions"]
    assert [each["version"] for each in told] == [str(number) for number in range(10, 0, -1)]
    assert [each["rounds"] for each in told] == [6] * 10
    assert (told[0]["first"], told[0]["last"], told[0]["labels"]) == (55, 60, 360)
    assert told[0]["estimate"]["high"] < told[1]["estimate"]["low"]
    alike = client_of(name="olga").get(f"{API}/alike/versions").json()["versions"]
    assert [each["rounds"] for each in alike] == [COMBINED, COMBINED]


def test_the_api_says_which_is_better(client_of: Clients) -> None:
    olga = client_of(name="olga")
    assert "points worse than 9 (the accuracy differs by" in olga.get(f"{API}/worse/versions").json()["comparison"]
    turned = olga.get(f"{API}/worse/versions", params={"first": "10", "second": "9"}).json()["comparison"]
    assert "Version 9 is" in turned
    assert "points better than 10" in turned
    assert olga.get(f"{API}/fresh/versions").json()["comparison"] is None


def test_the_page_says_which_is_better(client_of: Clients) -> None:
    olga = client_of(name="olga")
    page = olga.get("/monitors/worse/versions").text
    assert "points worse than 9" in page
    assert "opmon compare -m worse 9 10" in page
    turned = olga.get("/monitors/worse/versions?first=10&second=9").text
    assert "points better than 10" in turned
    assert "do not tell versions 1 and 2 apart" in olga.get("/monitors/alike/versions").text
    assert "Choose two different versions" in olga.get("/monitors/alike/versions?first=2&second=2").text
    assert "No round has a final estimate yet." in olga.get("/monitors/fresh/versions").text
