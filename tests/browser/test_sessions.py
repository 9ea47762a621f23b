"""Sessions that end while somebody writes: nothing is lost, and all is told in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from opmon.store import annotators
from opmon.web import identity
from tests.browser.conftest import Watched, all_saved, current, moved_on, page_of
from tests.web.past import Past, live_through, watched_monitors
from tests.web.world import World, monitor

Contexts = Callable[..., BrowserContext]
KEEP = "([part, entry]) => localStorage.setItem(part + entry.key, JSON.stringify(entry))"
OF_API = ("Bearer", "x-csrf", "Error", "fetch", "JSON")


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    reviews = monitor(classes=["good", "bad"], columns={"text": "review"})
    return World.of(sqlite, tmp_path, {"reviews": reviews, **watched_monitors()})


@pytest.fixture(autouse=True)
def refusals_are_meant(watched: Watched) -> Iterator[None]:
    """A browser complains of each answer that refuses something."""
    yield
    refused = [each for each in watched.complaints if "the server responded with a status of 4" in each]
    watched.complaints[:] = [each for each in watched.complaints if each not in refused]


def signed_out(page: Page) -> None:
    page.locator("form", has_text="Sign out").first.evaluate("each => each.submit()")
    page.wait_for_url("**/sign-in")


def signed_in(page: Page, token: str) -> None:
    page.goto("/sign-in")
    page.fill("#token", token)
    page.click("text=Sign in >> nth=-1")
    page.wait_for_url(lambda url: "sign-in" not in url)


def answered(page: Page, key: str) -> None:
    before = current(page)
    page.keyboard.press(key)
    moved_on(page, before)


def in_plain_words(page: Page) -> None:
    saved = page.locator("#saved[title]")
    told = page.inner_text("body") + "".join(str(each.get_attribute("title")) for each in saved.all())
    assert [each for each in OF_API if each in told] == []


def test_who_signs_in_again_in_another_tab_goes_on_in_this_one(world: World, context_of: Contexts) -> None:
    ids = world.ask("reviews", [{"review": f"review {k}"} for k in range(3)])
    token = world.invite("ann")
    context = context_of(token=token)
    page, other = page_of(context, "reviews"), context.new_page()
    other.goto("/label")
    signed_out(other)
    page.bring_to_front()
    answered(page, "1")
    page.wait_for_selector("#notice:has-text('You are signed out')")
    in_plain_words(page)
    signed_in(other, token)
    page.bring_to_front()
    answered(page, "2")
    all_saved(page)
    page.wait_for_selector("#notice", state="hidden")
    assert [said[:3] for said in world.said()] == [(ids[0], "ann", "good"), (ids[1], "ann", "bad")]


def test_an_answer_is_never_of_somebody_else_who_signs_in(world: World, context_of: Contexts) -> None:
    world.ask("reviews", [{"review": f"review {k}"} for k in range(3)])
    tokens = {name: world.invite(name) for name in ("ann", "ben")}
    context = context_of(token=tokens["ann"])
    page, other = page_of(context, "reviews"), context.new_page()
    other.goto("/label")
    signed_out(other)
    signed_in(other, tokens["ben"])
    page.bring_to_front()
    answered(page, "1")
    page.wait_for_selector('#notice:has-text("this page is ann\'s, and ben is signed in now")')
    in_plain_words(page)
    assert world.said() == []


def test_a_token_that_is_taken_away_is_told_and_what_was_written_stays(world: World, context_of: Contexts) -> None:
    live_through(world.store, Past("sinking", 20, drop=0.4))
    token = world.invite("olga", "operator")
    context = context_of(token=token)
    page = context.new_page()
    page.goto("/monitors/sinking")
    newest = page.locator(".events > li").first
    newest.locator("input[name=note]").fill("rolled back")
    with world.store.write() as connection:
        annotators.revoke(connection, "olga", datetime.now(UTC))
    page.wait_for_timeout(1000 * identity.REMEMBERED + 500)
    newest.locator("button[value=acknowledge]").click()
    page.wait_for_selector(".said:has-text('You are signed out')")
    in_plain_words(page)
    assert newest.locator("input[name=note]").input_value() == "rolled back"
    token = world.invite("olga", "operator")
    with context.expect_page() as opened:
        page.click(".said a")
    tab = opened.value
    tab.fill("#token", token)
    tab.click("text=Sign in >> nth=-1")
    tab.wait_for_url("**/monitors/sinking")
    page.bring_to_front()
    newest.locator("button[value=acknowledge]").click()
    page.wait_for_selector("text=Taken on by olga")
    assert "rolled back" in page.locator(".events > li").first.inner_text()


@pytest.mark.parametrize("scripts", [True, False])
def test_whoever_takes_an_event_on_second_is_told(world: World, context_of: Contexts, scripts: bool) -> None:
    live_through(world.store, Past("sinking", 20, drop=0.4))
    pages = [context_of(name, java_script_enabled=scripts).new_page() for name in ("olga", "paul")]
    for page in pages:
        page.goto("/monitors/sinking")
    for page in pages:
        newest = page.locator(".events > li").first
        newest.locator("input[name=note]").fill("I do it")
        newest.locator("button[value=acknowledge]").click()
        page.wait_for_selector("text=Taken on by olga" if page is pages[0] else "text=olga took")
    assert "what you wrote was not kept" in pages[1].inner_text("main")
    if scripts:
        pages[1].click("text=See who has it")
        pages[1].wait_for_selector("text=Taken on by olga")


@pytest.mark.parametrize(
    "said",
    [
        {"status": 404, "body": "404 page not found"},
        {"status": 400, "body": "<html>Request Header Or Cookie Too Large</html>"},
        {"status": 405, "json": {"detail": "Method Not Allowed"}},
        {"status": 422, "json": {"detail": "no"}},
        {"status": 413, "body": "<html>Request Entity Too Large</html>"},
        {"status": 200, "json": {}},
    ],
)
def test_what_others_say_in_place_of_opmon_takes_no_answer_away(
    world: World, context_of: Contexts, said: dict[str, Any]
) -> None:
    """A proxy while opmon is exchanged, for example, or MLflow's server without opmon."""
    ids = world.ask("reviews", [{"review": f"review {k}"} for k in range(3)])
    page = page_of(context_of(), "reviews")
    page.route("**/api/v1/answers", lambda route: route.fulfill(**said))
    answered(page, "1")
    answered(page, "2")
    page.wait_for_selector("#saved[data-state=kept]")
    assert "2 answers not sent yet" in page.inner_text("#saved")
    page.unroute("**/api/v1/answers")
    page.evaluate("dispatchEvent(new Event('online'))")
    all_saved(page)
    assert [each[:3] for each in world.said()] == [(ids[0], "ann", "good"), (ids[1], "ann", "bad")]


def test_an_answer_that_opmon_cannot_read_holds_up_no_other(world: World, context_of: Contexts) -> None:
    ids = world.ask("reviews", [{"review": f"review {k}"} for k in range(2)])
    page = page_of(context_of(), "reviews")
    page.evaluate(KEEP, ["opmon/answers/ann/", {"key": "t1-0", "truth": 3, "at": "2026-01-01T00:00:00Z"}])
    answered(page, "1")
    all_saved(page)
    assert "An answer was not taken" in page.inner_text("#notice")
    assert [each[:3] for each in world.said()] == [(ids[0], "ann", "good")]


def test_answers_to_other_opmons_on_the_host_are_left_to_them(world: World, context_of: Contexts) -> None:
    """And so are those that an earlier version kept, which did not say for which opmon, but for this one's own."""
    ids = world.ask("reviews", [{"review": f"review {k}"} for k in range(2)])
    context = context_of()
    page = page_of(context, "reviews")
    own = {"key": current(page), "truth": "bad", "at": "2026-01-01T00:00:00Z"}
    foreign = {"key": "t1-000000000000", "truth": "5", "at": "2026-01-01T00:00:00Z"}
    page.evaluate(KEEP, ["opmon/outbox/ann/", own])
    for part in ("opmon/outbox/ann/", "opmon/team-b/opmon/answers/ann/", "opmon/outbox/ann/b/"):
        page.evaluate(KEEP, [part, foreign])
    page.reload()
    page.wait_for_selector("#task:not([hidden])")
    all_saved(page)
    answered(page, "1")
    all_saved(page)
    kept = page.evaluate("Object.keys(localStorage).filter(each => each.includes('/t1-'))")
    assert {each.removesuffix(foreign["key"]) for each in kept} == {
        "opmon/outbox/ann/",
        "opmon/team-b/opmon/answers/ann/",
        "opmon/outbox/ann/b/",
    }
    assert [each[:3] for each in world.said()] == [(ids[0], "ann", "bad"), (ids[1], "ann", "good")]
    assert not page.is_visible("#notice")


def test_a_service_that_does_not_answer_is_told_in_words(world: World, context_of: Contexts, watched: Watched) -> None:
    world.ask("reviews", [{"review": f"review {k}"} for k in range(9)])
    page = page_of(context_of(), "reviews")
    watched.is_cut = True
    page.route("**/api/v1/**", lambda route: route.abort())
    for _ in range(7):
        answered(page, "1")
    page.wait_for_selector("text=The next tasks do not come")
    assert "opmon does not answer" in page.inner_text("#rest")
    in_plain_words(page)
    page.unroute("**/api/v1/**")
    page.evaluate("dispatchEvent(new Event('online'))")
    all_saved(page)
    page.wait_for_selector("#task:not([hidden])")
