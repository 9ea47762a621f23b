"""The pages and endpoints of tomographies."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import numpy as np
import pytest
import sqlalchemy as sa

from opmon.binding import bound
from opmon.reports.robustness_files import packed, unpacked
from opmon.store import erasing, rounds, schema, tomographies
from opmon.web.charts.cube import Voxel, cube
from opmon.web.robust import asked, layers, pair_tables, three_of
from tests.web.maps import map_rounds, tomography
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, monitor

Clients = Callable[..., httpx.Client]
API = "/api/v1/monitors/sinking/robustness"


def test_a_page_shows_the_newest_and_its_history(client_of: Clients, olga: str) -> None:
    page = client_of(olga).get("/monitors/sinking/robustness").text
    for words in (
        "Robustness of sinking",
        "1,296",
        "still right",
        "Two at a time",
        "Three at a time",
        "zoom ↓, glare →",
        "The mean over all tests, over time",
        "&lt;b&gt;an&lt;/b&gt; exmaple",
    ):
        assert words in page
    assert page.count('<table class="heat">') == 6 + 6
    assert page.count("<title>unperturbed: ") == 1
    assert page.count("/monitors/sinking/robustness/") >= 3


def test_a_question_is_answered_and_its_tests_are_outlined(client_of: Clients, olga: str) -> None:
    watcher, question = client_of(olga), "zoom == 5 and glare > 3"
    page = watcher.get("/monitors/sinking/robustness/40", params={"q": question}).text
    told = watcher.get(f"{API}/40/answer", params={"question": question}).json()
    assert told["measured"] + told["predicted"] == 2 * 36
    assert told["low"] < told["value"] < told["high"]
    assert len(told["worst"]) == 5
    assert bound(f"{100 * told['value']:.1f} %") in page
    assert len(re.findall(r'<td class="[^"]* asked"', page)) >= 2
    assert not re.findall(r'<td class="[^"]* asked"', watcher.get("/monitors/sinking/robustness/40").text)


def test_what_cannot_be_asked_is_said_where_it_was_asked(client_of: Clients, olga: str) -> None:
    watcher = client_of(olga)
    page = watcher.get("/monitors/sinking/robustness", params={"q": "<i>zom > 2"})
    assert page.status_code == 200
    assert "the query cannot be read" in page.text
    assert "<i>zom" not in page.text
    refused = watcher.get(f"{API}/40/answer", params={"question": "zom > 2"})
    assert refused.status_code == 422
    assert "zoom" in refused.json()["error"]
    twice = watcher.get("/monitors/sinking/robustness", params={"a": "zoom", "b": "zoom"}).text
    assert "Three different perturbations" in twice


def test_all_of_it_is_json(client_of: Clients, olga: str) -> None:
    watcher = client_of(olga)
    listed = watcher.get(API).json()["tomographies"]
    assert [each["round"] for each in listed] == [50, 40, 30]
    assert watcher.get(f"{API}/50").json() == listed[0]
    assert set(listed[0]["summary"]["queries"]) == {"far", "both"}
    whole = watcher.get(f"{API}/50/map").json()
    assert len(whole["severities"]) == len(whole["share"]) == 1296
    picture = watcher.get(f"{API}/50/pictures/0-0.png")
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert picture.content.startswith(b"\x89PNG")
    for missing in (f"{API}/50/pictures/examples.json", f"{API}/50/pictures/9-9.png", f"{API}/41"):
        assert watcher.get(missing).status_code == 404, missing


def test_a_monitor_without_one_says_how_to_get_one(client_of: Clients, olga: str) -> None:
    page = client_of(olga).get("/monitors/calm/robustness").text
    assert "perturbations: [zoom, brightness, gaussian-noise]" in page


def test_annotators_do_not_see_it(client_of: Clients, world: World, olga: str) -> None:
    annotator = client_of(world.invite("ann"))
    assert annotator.get("/monitors/sinking/robustness").status_code == 403
    assert annotator.get(f"{API}/50/answer").status_code == 403
    assert client_of(world.invite("bob", "viewer", ["calm"])).get(API).status_code == 404


class TestKept:
    """What the database keeps of them."""

    @pytest.fixture
    def world(self, tmp_path_factory: pytest.TempPathFactory, database: str) -> World:
        made = World.of(
            database, tmp_path_factory.mktemp("kept"), {"many": monitor(classes=list(DIGITS), rules=[FLOOR])}
        )
        live_through(made.store, Past("many", 14, with_tasks=14))
        return made

    def test_only_the_newest_can_be_asked(self, world: World) -> None:
        small = tomography(("zoom", "blur"))
        map_rounds(world.store, "many", tuple(range(1, 13)), small)
        with world.store.read() as connection:
            found = tomographies.newest(connection, "many", 100)
            assert [each.is_whole for each in found] == [True] * tomographies.WHOLE + [False] * 2
            kept = tomographies.tests_of(connection, found[0].round_id)
            assert tomographies.tests_of(connection, found[-1].round_id) is None
        assert kept is not None
        again = unpacked(kept)
        assert again.ask("zoom > 2") == small.ask("zoom > 2")

    def test_one_made_again_takes_the_place_of_the_first(self, world: World) -> None:
        map_rounds(world.store, "many", (3,), tomography(("zoom", "blur")))
        map_rounds(world.store, "many", (3,), tomography(("zoom", "noise")))
        with world.store.read() as connection:
            (found,) = tomographies.newest(connection, "many", 100)
        assert found.summary["names"] == ["zoom", "noise"]

    def test_what_is_too_large_is_kept_as_a_summary(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tomographies, "LARGEST", 100)
        map_rounds(world.store, "many", (3,), tomography(("zoom", "blur")))
        with world.store.read() as connection:
            (found,) = tomographies.newest(connection, "many", 100)
        assert not found.is_whole

    def test_examples_go_with_the_inputs_they_show(self, world: World) -> None:
        map_rounds(world.store, "many", (4, 9), tomography(("zoom", "blur")))  # they look back three rounds
        with world.store.write() as connection:
            erasing.erase(connection, rounds.get(connection, "many", 7).id, datetime.now(UTC))
            there = sa.select(schema.tomographies.c.examples.is_not(None)).order_by(schema.tomographies.c.round_id)
            assert list(connection.scalars(there)) == [True, False]


def test_every_pair_is_laid_out_by_its_severities() -> None:
    result = tomography()
    tables = pair_tables(result, asked(result, "zoom == 1 and glare == 2 and order == 2"))
    assert [(each.first, each.second) for each in tables][:2] == [("zoom", "glare"), ("zoom", "gaussian-noise")]
    cell = tables[0].cells[1][2]
    assert cell is not None
    assert cell.words.startswith("zoom 1 + glare 2: ")
    assert cell.asked
    assert sum(each.asked for table in tables for line in table.cells for each in line if each) == 1


def test_in_an_ordered_space_each_order_has_its_table() -> None:
    result = tomography(("zoom", "blur", "noise"), ordered=True)
    tables = pair_tables(result, asked(result, None))
    assert len(tables) == 6
    cell = {(each.first, each.second): each.cells[1][2] for each in tables}[("blur", "zoom")]
    assert cell is not None
    assert cell.words.startswith("blur 1 → zoom 2")
    voxel = layers(result, asked(result, None), (2, 0, 1))[3][1][2]
    assert voxel is not None
    assert voxel.words.startswith("noise 1 → zoom 2 → blur 3")


def test_the_three_that_cost_most_are_shown_unless_others_are_chosen() -> None:
    result = tomography()
    assert three_of(result, ()) == (0, 2, 3)
    assert three_of(result, ("blur", None, "glare")) == (3, 1, 2)


def test_a_cube_has_a_voxel_for_each_test_and_escapes_names() -> None:
    voxel = Voxel(10, True, False, "9", "<b>: 9 %")
    drawn = str(cube([[[voxel, None], [voxel, voxel]], [[None, None], [None, None]]], ("<a>", "b", "c"), "<alt>"))
    assert drawn.count("<g ") == 3
    assert "<a>" not in drawn
    assert "<b>" not in drawn


def test_packed_tells_the_same() -> None:
    result = tomography(seed=3)
    again = unpacked(packed(result))
    assert np.array_equal(again.share, result.share)
    assert again.tests.chains() == result.tests.chains()
    assert again.facts == result.facts
