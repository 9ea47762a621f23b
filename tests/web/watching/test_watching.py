"""The pages and endpoints of one monitor and one round, and what operators do there."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest

from opmon.binding import bound
from opmon.quantities import F1, RECALL
from opmon.store import measured, outbox, revisions, rounds, sliced
from opmon.store.measured import Measured
from opmon.types import Estimate
from opmon.types.slicing import Sliced
from opmon.web.server import Server
from tests.made_once import new_opmon_database
from tests.web.past import FLOOR, Past, confusion, live_through
from tests.web.world import DIGITS, World, encoded, monitor, picture

Clients = Callable[..., httpx.Client]
API = "/api/v1"
HOSTILE = "<img src=x onerror=alert(1)>"


def test_the_page_says_why(client_of: Clients, olga: str) -> None:
    page = client_of(olga).get("/monitors/sinking").text
    assert "Why it is degraded" in page
    assert "A rule has raised an alarm that has not ended." in page
    assert "the accuracy is below 90%" in page
    assert bound("threshold 90 %") in page
    assert page.count('class="point alarm"') >= 2 * 5
    assert "version 3" in page
    assert "Accuracy over 59 rounds" in page
    assert "What it got wrong in round 59" in page
    assert "threshold: 0.9" in page, "the configuration"
    assert "opmon events" not in page


def test_a_monitor_without_rounds_or_rules_has_its_page(client_of: Clients, olga: str) -> None:
    watcher = client_of(olga)
    fresh = watcher.get("/monitors/fresh").text
    assert "No round has an estimate yet." in fresh
    assert "No round has an estimate yet.." not in fresh
    assert "No rule has raised anything." in fresh
    prices = watcher.get("/monitors/prices").text
    assert "No rule watches this monitor" in prices
    assert "Mean squared error now" in prices
    assert "€²" in prices
    assert "accuracy" not in prices.lower().replace("accuracy_below", "")


def test_rounds_go_back_to_the_first(client_of: Clients, olga: str) -> None:
    watcher = client_of(olga)
    first = watcher.get("/monitors/sinking/rounds").text
    assert 'aria-label="Round 60"' in first
    assert "?before=11" in first
    second = watcher.get("/monitors/sinking/rounds?before=11").text
    assert 'aria-label="Round 10"' in second
    assert 'aria-label="Round 11"' not in second
    numbers = [each["number"] for each in watcher.get(f"{API}/monitors/sinking/rounds?limit=3").json()["rounds"]]
    assert numbers == [60, 59, 58]


def test_a_round_says_what_it_is_made_of(client_of: Clients, olga: str) -> None:
    watcher = client_of(olga)
    page = watcher.get("/monitors/sinking/rounds/59").text
    for words in (
        "1,000 of 1,012 received",
        "9 could not be scored",
        "60 labels of 1,000 inputs",
        "drifted",
        "K-S p_value",
    ):
        assert words in page
    told = watcher.get(f"{API}/monitors/sinking/rounds/59").json()
    assert (told["asked"], told["spoken"], told["verdicts"][0]["state"]) == (60, 60, "alarm")
    failures = watcher.get(f"{API}/monitors/sinking/rounds/59/failures").json()
    assert failures["answered"] == 60
    assert failures["total"] == told["failures"] == len(failures["failures"])
    assert failures["failures"][0]["weight"] == pytest.approx(1000 / 60)
    assert {field["name"] for field in failures["failures"][0]["fields"]} == {"age", "city", "income"}
    waiting = watcher.get("/monitors/sinking/rounds/60").text
    assert "waits for labels" in waiting
    assert "Expected accuracy, told before its labels" in waiting
    assert "a prediction and no estimate" in waiting
    monitor = watcher.get("/monitors/sinking").text
    assert "Expected accuracy of round 60, before its labels" in monitor
    assert 'class="point expected"' in monitor
    assert "such predictions were off by" in monitor
    assert "They were wrong lately" in monitor, "the accuracy fell faster than was foreseen"
    old = watcher.get("/monitors/sinking/rounds/2")
    assert old.status_code == 200
    assert watcher.get("/monitors/sinking/rounds/61").status_code == 404
    assert watcher.get("/monitors/sinking/rounds/0").status_code == 422


def test_errors_of_numbers_come_far_ones_first(client_of: Clients, olga: str) -> None:
    found = client_of(olga).get(f"{API}/monitors/prices/rounds/5/failures").json()["failures"]
    errors = [each["error"] for each in found]
    assert errors == sorted(errors, reverse=True)


def test_the_timeline_and_the_configuration_as_json(client_of: Clients, olga: str) -> None:
    watcher = client_of(olga)
    told = watcher.get(f"{API}/monitors/sinking/timeline").json()
    assert told["threshold"] == 0.9
    assert [each["round"] for each in told["points"]] == list(range(1, 60))
    assert {each["model_version"] for each in told["points"]} == {"1", "2", "3"}
    assert all(each["estimate"]["low"] <= each["estimate"]["value"] for each in told["points"])
    (waiting,) = told["foreseen"]["waiting"]
    assert (waiting["round"], waiting["expected"]["quantity"]) == (60, "accuracy")
    assert waiting["expected"]["text"].startswith("5")
    assert told["foreseen"]["record"]["rounds"] == 19, "those of the newest version"
    configured = watcher.get(f"{API}/monitors/sinking/configuration").json()["configuration"]
    assert configured["rules"] == [FLOOR]
    one = watcher.get(f"{API}/status/sinking").json()
    assert (one["status"], one["latest"]["number"], len(one["newest"])) == ("degraded", 59, 10)


def test_operators_take_events_on_and_send_them_again(world: World, client_of: Clients, olga: str) -> None:
    operator, viewer = client_of(olga), client_of(world.invite("vera", "viewer"))
    events = operator.get(f"{API}/monitors/sinking/events").json()["events"]
    newest = events[0]["id"]
    for act in ("acknowledge", "replay"):
        assert viewer.post(f"{API}/events/{newest}/{act}", json={}).status_code == 403
    assert "Take it on" not in viewer.get("/monitors/sinking").text
    assert operator.post(f"{API}/events/{newest}/acknowledge", json={"note": HOSTILE}).json()["new"]
    assert operator.post(f"{API}/events/{newest}/acknowledge", json={}).json() == {"new": False, "by": "olga"}
    assert operator.post(f"{API}/events/{newest}/replay", json={}).json() == {"deliveries": 1}
    with world.store.read() as connection:
        kept = outbox.get(connection, newest)
    assert (kept["acknowledged_by"], kept["note"]) == ("olga", HOSTILE)
    assert [each["state"] for each in kept["deliveries"]] == ["pending"]
    page = operator.get("/monitors/sinking").text
    assert "Taken on by olga" in page
    assert HOSTILE not in page
    assert "nobody has taken on" not in page
    still = operator.get(f"{API}/monitors/sinking/events?open=true").json()["events"]
    assert newest not in [each["id"] for each in still]
    assert operator.post(f"{API}/events/nothing/replay", json={}).status_code == 404


def test_nobody_acts_on_what_they_may_not_see(world: World, client_of: Clients, olga: str) -> None:
    other = client_of(world.invite("otto", "operator", ["calm"]))
    event = client_of(olga).get(f"{API}/monitors/sinking/events").json()["events"][-1]["id"]
    assert other.post(f"{API}/events/{event}/replay", json={}).status_code == 404
    for path in ("/monitors/sinking", "/monitors/sinking/rounds", "/monitors/sinking/rounds/1"):
        assert other.get(path).status_code == 404
        assert other.get(API + path.replace("/monitors/sinking", "/monitors/sinking/timeline", 1)).status_code == 404
    annotator = client_of(world.invite("anna"))
    for path in ("/monitors/calm", "/monitors/calm/rounds", "/monitors/calm/rounds/39"):
        assert annotator.get(path).status_code == 403
    assert annotator.get(f"{API}/monitors/calm/configuration").status_code == 403


def test_another_site_cannot_make_a_browser_act(client_of: Clients, olga: str, server: Server) -> None:
    browser = client_of(follow_redirects=False)
    browser.post("/sign-in", data={"token": olga})
    event = browser.get(f"{API}/monitors/sinking/events").json()["events"][-1]["id"]
    for headers in ({}, {"x-csrf-token": "wrong"}, {"origin": "https://evil.example"}):
        answer = browser.post(f"{API}/events/{event}/replay", json={}, headers=headers)
        assert answer.status_code == 403


def test_names_of_others_are_only_text(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Model, classes, rules, inputs and their columns may be called like pieces of a page."""
    folder = tmp_path_factory.mktemp("hostile")
    rule = {**FLOOR, "name": HOSTILE}
    names = {"evil": monitor(classes=[HOSTILE, "'\"><script>"], rules=[rule])}
    made = World.of(new_opmon_database(folder / "opmon.db"), folder, names)
    live_through(made.store, Past("evil", 12, model=HOSTILE, rule=HOSTILE, drop=0.5, classes=(HOSTILE, "'\"><script>")))
    with (
        made.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as client,
    ):
        for path in ("/", "/monitors/evil", "/monitors/evil/rounds", "/monitors/evil/rounds/11"):
            page = client.get(path)
            assert page.status_code == 200
            assert HOSTILE not in page.text
            assert "<script>" not in page.text
        assert "&lt;img src=x onerror=alert(1)&gt;" in client.get("/monitors/evil/rounds/11").text


def test_slices_and_further_measures_are_shown_where_there_are_any(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("slices")
    made = World.of(new_opmon_database(folder / "opmon.db"), folder, {"calm": monitor(classes=list(DIGITS))})
    live_through(made.store, Past("calm", 4, drop=0.0, rule=None))
    worse = Sliced(f"country {HOSTILE}", {"country": HOSTILE}, 200, 0.2, 12, 12, 0.5, 0.2, 0.8, worse_by=0.4)
    alike = Sliced("country DE", {"country": "DE"}, 800, 0.8, 48, 48, 0.97, 0.9, None)
    recall = Estimate(0.7, 0.6, 0.8, 60, 1000, 1.0, "srs", quantity=RECALL.of(HOSTILE))
    with made.store.write() as connection:
        latest = revisions.newest_final(connection, "calm")
        assert latest is not None
        round_ = rounds.get(connection, "calm", latest.round_number)
        rounds.update(connection, round_.id, sliced={})
        sliced.add(connection, latest.key, [worse, alike])
        known = Measured("recall", recall.quantity, recall), Measured("f1", F1, None, "no positive was drawn")
        measured.add(connection, latest.key, [*known, *confusion("cat", HOSTILE)])
    with (
        made.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as client,
    ):
        for path in ("/monitors/calm", "/monitors/calm/rounds/3"):
            page = client.get(path).text
            assert HOSTILE not in page
            assert "country DE" in page
            assert bound("80.0 %") in page, "the share of the slice"
            assert bound("70 %") in page or bound("70.0 %") in page, "the recall"
            assert "not known: no positive was drawn" in page
            assert '<span class="range">20–40</span>' in page
            assert page.count('class="right"') == 2
        told = client.get(f"{API}/monitors/calm/rounds/3").json()
    assert [(each["name"], each["worse_by"]) for each in told["slices"]] == [(worse.name, 0.4), ("country DE", None)]
    assert [each["estimate"] is None for each in told["measures"]] == [False, True, False, False, False, False]


def test_answers_and_values_are_shown_as_people_read_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("read")
    made = World.of(
        new_opmon_database(folder / "opmon.db"), folder, {"prices": monitor(problem="regression", unit="€")}
    )
    long = "שלום " * 2000
    payload = {"rooms": None, "area": 83.31340538341, "text": long}
    live_through(made.store, Past("prices", 3, drop=0.5, classes=("31773.685418", "98252.4"), unit="€",
                                  problem="regression", rule=None, payload=lambda k: payload))  # fmt: skip
    with (
        made.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as client,
    ):
        page = client.get("/monitors/prices/rounds/2").text
        assert bound("31,774 €") in page
        assert bound("98,252 €") in page
        assert "31773.685418" not in page
        assert "<dt>rooms</dt><dd><bdi>–</bdi></dd>" in page
        assert "<dt>area</dt><dd><bdi>83.3134</bdi></dd>" in page
        assert '<p dir="auto">שלום' in page
        assert "(10,000 characters)" in page
        told = client.get(f"{API}/monitors/prices/rounds/2/failures").json()["failures"][0]
        assert told["truth"] in ("31773.685418", "98252.4"), "programs are given it as it is"


def test_a_failure_is_shown_with_its_picture(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("pictures")
    made = World.of(
        new_opmon_database(folder / "opmon.db"),
        folder,
        {"digits": monitor(classes=list(DIGITS), inputs={"image": {"column": "picture"}})},
    )
    live_through(made.store, Past("digits", 3, drop=0.5, payload=lambda k: {"picture": encoded(picture(k % 10))}))
    with (
        made.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as client,
    ):
        found = client.get(f"{API}/monitors/digits/rounds/2/failures").json()["failures"][0]
        (field,) = found["fields"]
        assert field["url"] in client.get("/monitors/digits/rounds/2").text
        shown = client.get(field["url"])
        assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")


def test_events_are_taken_on_by_plain_forms(server: Server, world: World, olga: str) -> None:
    with httpx.Client(base_url=server.url, verify=False) as browser:
        browser.post("/sign-in", data={"token": olga})
        page = browser.get("/monitors/sinking").text
        forms = r'class="acts-on" method="post" action="([^"]+)".*?name="csrf" value="(\w+)"'
        action, csrf = re.findall(forms, page, re.S)[-1]
        event, given = action.rpartition("/")[2], {"act": "acknowledge", "note": "rolled back"}
        assert browser.post(action, data=given).status_code == 403, "no token against other sites"
        whole, elsewhere = {**given, "csrf": csrf}, {"sec-fetch-site": "cross-site"}
        assert browser.post(action, data=whole, headers=elsewhere).status_code == 403
        done = browser.post(action, data=whole)
        assert (done.status_code, done.headers["location"]) == (303, f"/monitors/sinking#event-{event}")
        told = [each for each in browser.get(f"{API}/monitors/sinking/events").json()["events"] if each["id"] == event]
        assert [(each["acknowledged_by"], each["note"]) for each in told] == [("olga", "rolled back")]
        assert browser.post(action, data={"csrf": csrf, "act": "replay"}).status_code == 303
        assert browser.post(action, data={"csrf": csrf, "act": "erase"}).status_code == 422
        of_another = action.replace("/sinking/", "/calm/")
        assert browser.post(of_another, data={"csrf": csrf, "act": "replay"}).status_code == 404
