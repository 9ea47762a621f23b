"""The pages on monitors as people meet them: on small and large screens, light and dark, by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from opmon.store import measured, revisions, rounds
from tests.browser.axe import grave_faults
from tests.made_once import new_opmon_database
from tests.web.past import FLOOR, Past, confusion, live_through
from tests.web.world import DIGITS, World, monitor

Contexts = Callable[..., BrowserContext]
PAGES = (
    "/",
    "/monitors/sinking",
    "/monitors/prices",
    "/monitors/fresh",
    "/monitors/sinking/rounds",
    "/monitors/sinking/rounds/59",
    "/monitors/sinking/rounds/60",
    "/monitors/sinking/plan",
    "/monitors/sinking/versions",
    "/monitors/sinking/robustness?q=zoom+%3E+2+and+blur+%3E+2",
    "/monitors/sinking/robustness/40?q=zom",
    "/monitors/calm/robustness",
    "/label",
    "/monitors/fresh/versions",
    "/monitors/prices/plan?half_width=2",
    "/docs",
    "/docs/labelling",
)


def opened(context: BrowserContext, path: str) -> Page:
    page = context.new_page()
    page.goto(path)
    return page


LONG = "a-class-whose-name-is-as-long-as-those-of-taxonomies-such-as-animals-birds-oscines"


def too_wide(page: Page) -> int:
    """By how many pixels the page or a table in it is wider than its place."""
    sheets = "[document.documentElement, ...document.querySelectorAll('.sheet')]"
    return int(page.evaluate(f"Math.max(...{sheets}.map(each => each.scrollWidth - each.clientWidth))"))


@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_long_names_and_large_numbers_fit_every_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    """Nothing is wider than the screen, and no table has to be pushed sideways."""
    name, classes = "monitor-of-the-nightly-batch-of-warranty-claims-in-europe-v2", (LONG, f"{LONG}-2")
    rule = {**FLOOR, "name": "the-floor-below-which-nobody-would-want-to-see-this-model"}
    monitors = {
        name: monitor(classes=list(classes), rules=[rule]),
        "prices": monitor(problem="regression", unit="Mio. € je Quartal"),
    }
    made = World.of(new_opmon_database(tmp_path / "long.db"), tmp_path, monitors)
    live_through(
        made.store,
        Past(name, 12, drop=0.5, rule=str(rule["name"]), classes=classes, model=LONG),
        Past("prices", 5, classes=(), unit="Mio. € je Quartal", problem="regression", rule=None, scale=1.5e12),
    )
    with made.store.write() as connection:
        latest = revisions.newest_final(connection, name)
        assert latest is not None
        measured.add(connection, latest.key, confusion(*classes))
        column = {"name": LONG, "method": "Wasserstein distance (normed)", "value": 5.92e-278, "threshold": 0.000417}
        drift = {
            "share": 1.0,
            "answers": 0.0,
            "drifted": [LONG],
            "compared": [{**column, "drifted": True, "own": True}],
        }
        round_ = rounds.get(connection, name, latest.round_number)
        rounds.update(connection, round_.id, drift={**drift, "skipped": {}, "problem": None})
    with made.served() as server:
        context = browser.new_context(base_url=server.url, viewport={"width": width, "height": 800})
        context.request.post("/sign-in", form={"name": "ann"})
        page = context.new_page()
        for path in (
            "/",
            f"/monitors/{name}",
            f"/monitors/{name}/rounds/11",
            "/monitors/prices",
            "/monitors/prices/plan",
        ):
            page.goto(path)
            assert too_wide(page) <= 1, path
            beyond = "each.getBoundingClientRect().right - each.closest('div').getBoundingClientRect().right"
            numbers = "[...document.querySelectorAll('.facts .big')]"
            assert page.evaluate(f"Math.max(0, ...{numbers}.map(each => {beyond}))") <= 1, path
            edge = "each.getBoundingClientRect().left - each.closest('svg').getBoundingClientRect().left"
            ticks = "[...document.querySelectorAll('svg .tick')].filter(each => each.getBoundingClientRect().width)"
            assert page.evaluate(f"Math.min(0, ...{ticks}.map(each => {edge}))") >= 0, path
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_every_page_fits_every_screen(context_of: Contexts, width: int, scheme: str) -> None:
    """And complains of nothing, and asks nobody else: the fixture watches."""
    context = context_of(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for path in PAGES:
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        assert too_wide(page) <= 0, path
        assert page.locator("main").count() == 1
        assert page.locator("h1").count() == 1, path
        assert page.evaluate("[...document.querySelectorAll('th')].every(each => each.scope || each.closest('.prose'))")
        for image in page.locator("svg[role=img]").all():
            assert image.get_attribute("aria-label"), path
        if width < 2560:  # what is larger holds nothing else
            assert grave_faults(page) == [], (path, width, scheme)


def test_moments_are_told_in_the_readers_zone(context_of: Contexts) -> None:
    there = opened(context_of(timezone_id="Pacific/Auckland", locale="en-NZ"), "/monitors/sinking/rounds/59")
    here = opened(context_of(timezone_id="UTC", locale="en-NZ"), "/monitors/sinking/rounds/59")
    told = [page.locator("time").first.inner_text() for page in (there, here)]
    assert told[0] != told[1]
    assert not any("UTC" in each for each in told)


def test_the_chart_tells_of_rounds_by_keyboard_and_opens_them(context_of: Contexts) -> None:
    page = opened(context_of(), "/monitors/sinking")
    page.focus("#history")
    page.keyboard.press("End")
    assert "expected" in page.inner_text(".readout"), "the newest one waits for labels"
    page.keyboard.press("ArrowLeft")
    assert page.inner_text(".readout").startswith("Round 59: ")
    page.keyboard.press("Enter")
    page.wait_for_url("**/monitors/sinking/rounds/59")


def test_the_chart_tells_of_the_round_that_is_pointed_at(context_of: Contexts) -> None:
    page = opened(context_of(), "/monitors/sinking")
    page.hover(".chart-box.big .point.alarm >> nth=0")
    assert "alarm" in page.inner_text(".readout")
    page.click(".chart-box.big .point.alarm >> nth=0")
    page.wait_for_url("**/monitors/sinking/rounds/55")


def test_an_alarm_is_taken_on_from_the_first_page(context_of: Contexts) -> None:
    page = opened(context_of("olga"), "/")
    page.click("text=Take it on")
    page.wait_for_url("**/monitors/sinking#events")
    newest = page.locator(".events > li").first
    newest.locator("input[name=note]").fill("rolled back")
    newest.locator("button[value=acknowledge]").click()
    page.wait_for_selector("text=Taken on by olga")
    assert "rolled back" in page.locator(".events > li").first.inner_text()
    page.locator(".events > li").first.locator("button[value=replay]").click()
    page.wait_for_selector("text=on its way")
    page.goto("/")
    assert page.locator("text=nobody has taken on").count() == 0


def test_a_refused_act_is_told_and_kept(context_of: Contexts, world: World) -> None:
    page = opened(context_of("olga"), "/monitors/sinking")
    page.route("**/api/v1/events/**", lambda route: route.fulfill(status=200, body="no JSON"))
    page.locator("button[value=replay]").first.click()
    page.wait_for_selector(".said")
    assert page.locator("button[value=replay]").first.is_enabled()


def test_events_are_taken_on_and_sent_again_without_scripts(context_of: Contexts) -> None:
    page = opened(context_of("olga", java_script_enabled=False), "/monitors/sinking")
    newest = page.locator(".events > li").first
    newest.locator("input[name=note]").fill("rolled back")
    newest.locator("button[value=acknowledge]").click()
    assert "Taken on by olga" in page.locator(".events > li").first.inner_text()
    page.locator(".events > li").first.locator("button[value=replay]").click()
    assert "on its way" in page.locator(".events > li").first.inner_text()


def test_a_question_is_answered_on_the_page(context_of: Contexts) -> None:
    page = opened(context_of(), "/monitors/sinking/robustness")
    page.fill("#q", "zoom == 5 and glare == 5")
    page.keyboard.press("Enter")
    page.wait_for_selector("td.asked")
    assert "36 tests" in page.inner_text("#answer")
    assert "q=zoom" in page.url
    page.select_option("#three-c", "glare")
    page.click("text=Show")
    page.wait_for_selector(".cube:has-text('glare')", state="attached")
    assert page.input_value("#q") == "zoom == 5 and glare == 5"
    page.fill("#q", "zom > 1")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=did you mean")
    page.click("a[data-question]")
    page.wait_for_selector("#answer dl")


def test_a_plan_follows_what_is_typed(context_of: Contexts) -> None:
    page = opened(context_of(), "/monitors/sinking/plan")
    before = page.inner_text("#result .big")
    page.fill("#half_width", "8")
    page.wait_for_function("before => document.querySelector('#result .big').textContent !== before", arg=before)
    assert int(page.inner_text("#result .big")) < int(before)
    assert "half_width=8" in page.url
    page.fill("#half_width", "wide")
    page.wait_for_selector("text=the width must be a number")


class TestMany:
    """Twenty monitors, of which one sinks."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        names = [f"m{number:02}" for number in range(20)]
        monitors = {name: monitor(classes=list(DIGITS), rules=[FLOOR]) for name in names}
        made = World.of(new_opmon_database(tmp_path / "opmon.db"), tmp_path, monitors)
        live_through(made.store, *(Past(name, 12, drop=0.5 if name == "m07" else 0.0) for name in names))
        return made

    def test_what_is_typed_filters_them(self, context_of: Contexts) -> None:
        page = opened(context_of(), "/")
        rows = page.locator("#monitors tbody tr:visible")
        assert (rows.count(), rows.first.locator("a").first.inner_text()) == (20, "m07")
        page.fill("#wanted", "degraded")
        assert rows.count() == 1
        assert page.inner_text("#shown") == "1 of 20 shown"
        page.fill("#wanted", "m1 healthy")
        assert rows.count() == 10
