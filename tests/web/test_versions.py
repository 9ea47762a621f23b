"""Model versions side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import httpx
import pytest

from opmon.quantities import BIAS
from opmon.queries.versions import COMBINED, VersionView
from opmon.types import Estimate
from opmon.web.api.views.estimates import EstimateOut
from opmon.web.server import Server
from opmon.web.versions import against
from tests.made_once import new_opmon_database
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, monitor

Clients = Callable[..., httpx.Client]
API = "/api/v1/monitors"
HOSTILE = "<b>12"


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


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (-2.0, 0.5, "Version 2 is 1.5 days nearer to 0 than 1 (the distance of the bias from 0 differs by"),
        (0.5, -2.0, "Version 2 is 1.5 days farther from 0 than 1 (the distance of the bias from 0 differs by"),
        (-2.0, 2.0, "do not tell versions 1 and 2 apart: the distance of the bias from 0 differs by -0.28"),
    ],
)
def test_of_a_bias_the_distance_from_0_tells_which_is_better(first: float, second: float, words: str) -> None:
    bias, now = BIAS.measured_in("days"), datetime(2026, 3, 1, tzinfo=UTC)
    one, two = (
        VersionView("m", version, 1, 1, 1, now, now, 100, 0, Estimate(value, value - 0.2, value + 0.2, 100, 1000, 1.0,
                    "srs", quantity=bias))
        for version, value in (("1", first), ("2", second))
    )  # fmt: skip
    assert words in against(one, two, bias)


def test_the_api_tells_of_quantities_that_are_best_at_0() -> None:
    bias = Estimate(0.5, 0.3, 0.7, 100, 1000, 1.0, "srs", quantity=BIAS)
    assert EstimateOut.of(bias).better == "zero"


def test_the_page_says_which_is_better(client_of: Clients) -> None:
    olga = client_of(name="olga")
    page = olga.get("/monitors/worse/versions").text
    assert "points worse than 9" in page
    assert "opmon compare -m worse 9 10" in page
    turned = olga.get("/monitors/worse/versions?first=10&second=9").text
    assert "points better than 10" in turned
    assert "do not tell versions 1 and 2 apart" in olga.get("/monitors/alike/versions").text
    assert "Choose two different versions" in olga.get("/monitors/alike/versions?first=2&second=2").text
    unknown = olga.get("/monitors/worse/versions", params={"first": "9", "second": HOSTILE}).text
    assert "There is no version &lt;b&gt;12 with a final estimate" in unknown
    assert "points worse than" not in unknown
    asked = {"first": "9", "second": HOSTILE}
    assert olga.get(f"{API}/worse/versions", params=asked).json()["comparison"] is None
    assert "No round has a final estimate yet." in olga.get("/monitors/fresh/versions").text
