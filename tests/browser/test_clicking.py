"""Two clicks where one is meant: the second speaks of nothing that was not there yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from opmon.store import audit
from opmon.store.audit import Act
from opmon.web.server import Server
from tests.browser.conftest import all_saved, current
from tests.web.past import watched_world
from tests.web.world import World, monitor

Labelling = Callable[..., Page]


class TestLabelling:
    """The next task takes the place of the one that was answered, under the pointer."""

    @pytest.fixture
    def world(self, sqlite: str, tmp_path: Path) -> World:
        monitors = {
            "reviews": monitor(classes=["good", "bad"], columns={"text": "review"}),
            "tickets": monitor(problem="multilabel", classes=["bill", "defect"], columns={"text": "review"}),
            "prices": monitor(problem="regression", unit="€", columns={"text": "review"}),
            "answers": monitor(problem="judged", columns={"text": "review", "prediction": "said"}),
        }
        return World.of(sqlite, tmp_path, monitors)

    @pytest.fixture
    def server(self, world: World) -> Iterator[Server]:
        with world.served() as server:
            yield server

    @pytest.mark.parametrize(
        ("name", "button", "truth"),
        [
            ("reviews", ".class >> nth=0", "good"),
            ("tickets", ".choosing .main-button", "[]"),
            ("prices", ".written .main-button", "12.5"),
            ("answers", ".class >> nth=0", "pass"),
        ],
    )
    def test_an_answer_is_of_one_task(
        self, world: World, labelling: Labelling, name: str, button: str, truth: str
    ) -> None:
        ids = world.ask(name, [{"review": f"review {k}", "said": "yes"} for k in range(3)])
        page = labelling(monitor=name)
        if name == "prices":
            page.fill("#written", truth)
        page.locator(button).dblclick()
        page.wait_for_function("() => document.getElementById('told').textContent")
        page.wait_for_timeout(500)
        all_saved(page)
        assert world.said() == [(ids[0], "ann", truth, None)]
        assert not page.locator(".problem:visible").count()
        page.locator(button).click() if name != "prices" else page.keyboard.type(f"{truth}\n")
        page.wait_for_timeout(500)
        all_saved(page)
        assert [said[0] for said in world.said()] == ids[:2], "a click that comes when one can have read it counts"

    def test_a_reason_to_skip_is_chosen_and_not_met(self, world: World, labelling: Labelling) -> None:
        """Where the question comes up under the pointer, too."""
        world.ask("reviews", [{"review": f"review {k}"} for k in range(3)])
        page = labelling(monitor="reviews", viewport={"width": 400, "height": 420})
        before = current(page)
        over = "each => Object.assign(each.style, {position: 'fixed', inset: '0'})"
        page.evaluate(f"document.querySelectorAll('#skip-dialog button').forEach({over})")
        page.locator("#skip").dblclick()
        page.wait_for_timeout(500)
        assert (current(page), world.said()) == (before, [])
        page.keyboard.press("1")
        page.wait_for_timeout(100)
        all_saved(page)
        assert [said[3] for said in world.said()] == ["I cannot tell"]


class TestEvents:
    """What is done about an event is done once."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        return watched_world(tmp_path)

    @pytest.fixture
    def server(self, world: World) -> Iterator[Server]:
        with world.served() as server:
            yield server

    @pytest.mark.parametrize("scripts", [True, False])
    def test_taking_on_and_sending_again(
        self, context_of: Callable[..., BrowserContext], world: World, scripts: bool
    ) -> None:
        page = context_of("olga", java_script_enabled=scripts).new_page()
        page.goto("/monitors/sinking")
        newest = page.locator(".events > li").first
        newest.locator("input[name=note]").fill("rolled back")
        newest.locator("button[value=acknowledge]").dblclick()
        page.wait_for_selector("text=Taken on by olga")
        assert page.locator(".said").count() == 0
        newest.locator("button[value=replay]").dblclick()
        page.wait_for_selector(".events > li >> nth=0 >> text=on its way")
        assert page.locator(".said").count() == 0
        with world.store.read() as connection:
            acts = [each.act for each in audit.listing(connection)]
        assert (acts.count(Act.ACKNOWLEDGED), acts.count(Act.REPLAYED)) == (1, 1)
