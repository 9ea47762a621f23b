"""The first page: every monitor with its status, its estimate, its costs, and what needs a person."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import httpx

from opmon.queries.monitors import monitor_views
from opmon.queries.overview import SHOWN, overview
from tests.web.world import World

Clients = Callable[..., httpx.Client]


def test_lines_say_what_the_views_of_each_monitor_say(world: World) -> None:
    watches = [settings.watch for settings in world.settings.monitors.values()]
    with world.store.read() as connection:
        at = datetime.now(UTC)
        lines, views = overview(connection, watches, at), monitor_views(connection, watches, at, shown=3)
    for line, view in zip(lines, views, strict=True):
        for name in ("name", "quantity", "status", "why", "reasons", "rounds", "queue", "needs", "last_success_at"):
            assert getattr(line, name) == getattr(view, name), (line.name, name)
        latest, expected = line.latest, view.latest
        assert (latest is None) == (expected is None)
        if latest is not None and expected is not None:
            assert (latest.round, latest.estimate) == (expected.number, expected.estimate)
    assert [len(line.past) for line in lines] == [0, SHOWN - 1, SHOWN - 1, 5]


def test_the_page_tells_of_alarms_first(client_of: Clients, olga: str) -> None:
    page = client_of(olga).get("/").text
    assert "4 monitors" in page
    assert "What needs a person" in page
    assert "nobody has taken on the alarm of floor" in page
    assert page.index('href="/monitors/sinking"') < page.index('href="/monitors/calm"')
    assert "mean squared error, round 5" in page
    assert "€²" in page
    assert "no final estimate yet" in page
    assert "opmon events" not in page


def test_the_api_tells_the_same(client_of: Clients, olga: str) -> None:
    lines = client_of(olga).get("/api/v1/status").json()["monitors"]
    assert [line["name"] for line in lines] == ["sinking", "calm", "fresh", "prices"]
    sinking = lines[0]
    assert sinking["status"] == "degraded"
    assert sinking["latest"]["estimate"]["quantity"] == "accuracy"
    assert sinking["latest"]["estimate"]["text"].endswith(" %]")
    assert sinking["queue"]["open"] == 48
    assert {need["kind"] for need in sinking["needs"]} >= {"alarm", "delivery", "labels"}
    assert lines[2]["latest"] is None
    prices = lines[3]["latest"]["estimate"]
    assert (prices["quantity"], prices["unit"], prices["better"]) == ("mean squared error", "€²", "lower")


def test_roles(world: World, client_of: Clients) -> None:
    annotator, viewer = world.invite("ann"), world.invite("vera", "viewer", ["calm"])
    ann, vera = client_of(annotator), client_of(viewer)
    assert (ann.get("/").status_code, ann.get("/").headers["location"]) == (303, "/label")
    assert ann.get("/api/v1/status").status_code == 403
    assert [line["name"] for line in vera.get("/api/v1/status").json()["monitors"]] == ["calm"]
    page = vera.get("/").text
    assert "calm" in page
    assert "sinking" not in page


def test_nobody_else(client_of: Clients, olga: str) -> None:
    assert olga
    assert client_of().get("/").headers["location"].startswith("/sign-in")
    assert client_of().get("/api/v1/status").status_code == 401
