"""Labelling as people do it: by keyboard, by touch, through reloads and lost connections, side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from opmon.labels.queue import LabelQueue
from opmon.web.server import Server
from tests.browser.conftest import Watched, all_saved, current, moved_on, page_of, pressed
from tests.web.world import DIGITS, World, encoded, monitor, picture

Labelling = Callable[..., Page]
HOSTILE = "<img src=x onerror=alert(1)>"
BIRDS = [f"{kind} {number}" for kind in ("tern", "gull", "Möwe", "owl") for number in range(250)]
GUIDE = f"# How\n\n{HOSTILE} [bad](javascript:alert(1)) ![picture](https://example.com/x.png)\n\n*Look* twice."


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    pictures = {"inputs": {"image": {"column": "picture"}}}
    monitors = {
        "digits": monitor(classes=list(DIGITS), **pictures),
        "twice": monitor(classes=["cat", "dog"], **pictures),
        "flat": monitor(classes=list(DIGITS), inputs={"tensor": "pixels"}),
        "reviews": monitor(classes=["good", "bad"], columns={"text": "review"}),
        "elsewhere": monitor(classes=list(DIGITS), labels={"provider": {"path": "labels"}}),
        "prices": monitor(problem="regression", unit="€", inputs={"features": ["rooms", "area"]}),
        "birds": monitor(classes=BIRDS),
        "pets": monitor(),
        "hostile": monitor(
            classes=[HOSTILE, "plain"],
            columns={"text": HOSTILE},
            labels={"guidelines": GUIDE, "classes": {HOSTILE: HOSTILE}, "show_prediction": True},
        ),
    }
    return World.of(sqlite, tmp_path, monitors)


def pictures(count: int) -> list[dict[str, Any]]:
    return [{"picture": encoded(picture(k % 10)), "age": k} for k in range(count)]


def test_thirty_pictures_by_keyboard_alone(world: World, labelling: Labelling) -> None:
    ids = world.ask("digits", pictures(31))
    page = labelling()
    for k in range(30):
        page.wait_for_function(
            "() => Array.from(document.querySelectorAll('#pictures img')).every(each => each.naturalWidth)"
        )
        pressed(page, str(k % 10))
    all_saved(page)
    assert world.said() == [(ids[k], "ann", str(k % 10), None) for k in range(30)]
    page.wait_for_function("() => performance.getEntriesByName('key to next task').length >= 30")
    took = page.evaluate("performance.getEntriesByName('key to next task').map(each => each.duration)")
    print(f"from key press to the next task: median {statistics.median(took):.0f} ms of {len(took)}")
    assert statistics.median(took) < 500
    assert "30 by you · 1 to do" in page.inner_text("#counts")


def test_undo_corrects_the_last_answers(world: World, labelling: Labelling) -> None:
    ids = world.ask("digits", pictures(5))
    page = labelling()
    for key in "123":
        pressed(page, key)
    third = current(page)
    all_saved(page)  # an answer that is not sent yet is replaced by its correction
    pressed(page, "u")
    assert "You answered 3" in page.inner_text("#correcting")
    pressed(page, "Backspace")
    assert page.get_attribute(".class[aria-pressed=true]", "class") is not None
    pressed(page, "7")
    assert current(page) == third, "what was on the page before comes back"
    pressed(page, "u")
    pressed(page, "Escape")
    assert current(page) == third
    all_saved(page)
    assert world.said() == [(ids[k], "ann", str(k + 1), None) for k in range(3)] + [(ids[1], "ann", "7", None)]


def test_skips_have_a_reason(world: World, labelling: Labelling) -> None:
    ids = world.ask("digits", pictures(3))
    page = labelling()
    page.keyboard.press("s")
    pressed(page, "2")
    page.keyboard.press("s")
    page.fill("#skip-words", "upside down")
    pressed(page, "Enter")
    page.keyboard.press("s")
    page.keyboard.press("Escape")
    pressed(page, "1")
    all_saved(page)
    reasons = [(ids[0], None, "It is broken or empty"), (ids[1], None, "upside down"), (ids[2], "1", None)]
    assert [(task, truth, why) for task, _, truth, why in world.said()] == reasons
    page.wait_for_selector("text=All done")


def test_a_reload_goes_on_where_one_was(world: World, labelling: Labelling) -> None:
    world.ask("digits", pictures(6))
    page = labelling()
    for key in "12":
        pressed(page, key)
    before = current(page)
    all_saved(page)
    page.reload()
    page.wait_for_selector("#task:not([hidden])")
    assert current(page) == before
    page.wait_for_selector("#undo:not([disabled])")
    pressed(page, "u")
    assert "You answered 2" in page.inner_text("#correcting"), "what was said before the reload can be corrected"
    pressed(page, "9")
    all_saved(page)
    assert [truth for _, _, truth, _ in world.said()] == ["1", "2", "9"]


@pytest.mark.parametrize(("name", "words"), [("twice", "Others have the tasks"), ("elsewhere", "label provider")])
def test_who_has_the_tasks_that_are_left_is_told(
    world: World, context_of: Callable[..., BrowserContext], name: str, words: str
) -> None:
    world.ask(name, [{"picture": encoded(picture(1))}])
    LabelQueue(world.store).take("ben", name)
    page = context_of("ann").new_page()
    page.goto(f"/label/{name}")
    page.wait_for_selector("text=Nothing for you now")
    assert words in page.inner_text("#rest")


def test_two_annotators_speak_of_each_task_once(world: World, labelling: Labelling) -> None:
    ids = world.ask("twice", [{"picture": encoded(picture(k))} for k in range(4)], needs=2)
    pages = [labelling("ann", "twice"), labelling("ben", "twice")]
    for key in "1212":
        for page in pages:
            pressed(page, key)
    for page in pages:
        all_saved(page)
        page.wait_for_selector("text=All done")
    said = world.said()
    assert sorted((task, who) for task, who, _, _ in said) == sorted(
        (each, who) for each in ids for who in ("ann", "ben")
    )


def test_answers_survive_a_lost_connection_and_a_reload(
    world: World, context_of: Callable[..., BrowserContext], watched: Watched
) -> None:
    world.ask("digits", pictures(8))
    context = context_of()
    page = page_of(context)
    page.wait_for_function("() => document.querySelectorAll('#pictures img').length")
    watched.is_cut = True
    page.wait_for_load_state("networkidle")
    context.set_offline(True)
    for key in "1234":
        pressed(page, key)
    page.wait_for_selector("#saved[data-state=kept]")
    assert "4 answers not sent yet" in page.inner_text("#saved")
    assert world.said() == []
    context.set_offline(False)
    all_saved(page)
    assert [truth for _, _, truth, _ in world.said()] == ["1", "2", "3", "4"]
    page.route("**/api/v1/answers", lambda route: route.abort())
    pressed(page, "5")
    page.wait_for_selector("#saved[data-state=kept]")
    page.reload()
    page.unroute("**/api/v1/answers")
    all_saved(page)
    page.wait_for_function("() => document.getElementById('saved').textContent === 'all saved'")
    page.wait_for_selector("#task:not([hidden])")
    page.evaluate("dispatchEvent(new Event('online'))")
    all_saved(page)
    wait_for(page, lambda: len(world.said()) == 5)
    assert [truth for _, _, truth, _ in world.said()] == ["1", "2", "3", "4", "5"], "none twice, none lost"


AHEAD = """
    const Real = Date;
    globalThis.Date = class extends Real {
        constructor(...given) {
            super(...(given.length ? given : [Date.now()]));
        }
        static now() {
            return Real.now() + MILLISECONDS;
        }
    };
"""
SEND = (
    """([body, headers]) => fetch("/api/v1/answers", {method: "POST", body, headers}).then((answer) => answer.json())"""
)


@pytest.mark.parametrize("minutes", [0, 5, -5])
def test_an_answer_that_was_held_up_does_not_undo_its_correction(
    world: World, context_of: Callable[..., BrowserContext], watched: Watched, minutes: int
) -> None:
    """Whatever the annotator's clock says."""
    ids = world.ask("digits", pictures(2))
    context = context_of()
    context.add_init_script(AHEAD.replace("MILLISECONDS", str(60_000 * minutes)))
    page = page_of(context)
    assert page.evaluate("Date.now()") == pytest.approx(1000 * time.time() + 60_000 * minutes, abs=30_000)
    watched.is_cut = True
    held: list[list[Any]] = []

    def hold_up(route: Route) -> None:
        if '"truth":"1"' in str(route.request.post_data):
            own = {name: route.request.headers[name] for name in ("content-type", "x-csrf-token")}
            held.append([route.request.post_data, own])
            return route.abort()
        return route.continue_()

    page.route("**/api/v1/answers", hold_up)
    pressed(page, "1")
    wait_for(page, lambda: bool(held))
    pressed(page, "u")
    pressed(page, "7")
    page.evaluate("dispatchEvent(new Event('online'))")
    all_saved(page)
    page.unroute("**/api/v1/answers")
    assert page.evaluate(SEND, held[0]) == {"recorded": 1, "refused": {}}
    assert world.said() == [(ids[0], "ann", "7", None)]


def wait_for(page: Page, is_so: Callable[[], bool]) -> None:
    for _ in range(150):
        if is_so():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it did not come to pass")


def test_a_session_that_ends_loses_no_answer(
    world: World, context_of: Callable[..., BrowserContext], watched: Watched
) -> None:
    world.ask("digits", pictures(4))
    context = context_of()
    page = page_of(context)
    watched.is_cut = True
    context.clear_cookies()
    pressed(page, "1")
    page.wait_for_selector("#notice:not([hidden])")
    watched.complaints.clear()  # the browser itself notes the refusal
    page.click("#notice a")
    page.fill("#name", "ann")
    page.keyboard.press("Enter")
    page.wait_for_url("**/label/digits")
    page.wait_for_selector("#task:not([hidden])")
    all_saved(page)
    wait_for(page, lambda: len(world.said()) == 1)
    watched.complaints.clear()


def test_two_tabs_do_not_fight(world: World, context_of: Callable[..., BrowserContext]) -> None:
    world.ask("digits", pictures(30))
    context = context_of()
    one, other = page_of(context), page_of(context)
    met = set()
    for key in "12345":
        for page in (one, other):
            met.add(current(page))
            pressed(page, key)
    assert len(met) == 10, "no task is shown in both"
    for page in (one, other):
        all_saved(page)
    said = world.said()
    assert len(said) == len({task for task, *_ in said}) == 10


def test_a_phone_labels_by_touch(world: World, labelling: Labelling) -> None:
    world.ask("digits", pictures(3))
    page = labelling(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for digit in "471":
        before = current(page)
        page.tap(f".class:has-text('{digit}')")
        moved_on(page, before)
    all_saved(page)
    assert [truth for _, _, truth, _ in world.said()] == ["4", "7", "1"]


def test_numbers_are_written_and_checked(world: World, labelling: Labelling) -> None:
    world.ask("prices", [{"area": 71.5, "rooms": 3, "district": "Lend"} for _ in range(3)])
    page = labelling(monitor="prices")
    assert page.inner_text("#values th >> nth=0") == "rooms", "features in the order of the model"
    assert page.inner_text(".unit") == "€"
    for leave in ('document.querySelector("#guide").click()', "document.activeElement.blur()"):
        page.evaluate(leave)
        page.keyboard.press("Escape")  # closes the guide
        page.keyboard.type("-7")
        assert page.input_value("#written") == "-7", "what is typed goes into the field wherever the focus was"
        page.fill("#written", "")
    page.keyboard.type("dear")
    page.keyboard.press("Enter")
    assert "no number" in page.inner_text("#written-problem")
    page.fill("#written", "1,234")
    page.keyboard.press("Enter")
    assert "two things" in page.inner_text("#written-problem")
    page.fill("#written", "250000,5")
    pressed(page, "Enter")
    page.keyboard.type("-1e3")
    pressed(page, "Enter")
    page.keyboard.press("s")
    pressed(page, "1")
    all_saved(page)
    assert [truth for _, _, truth, _ in world.said()] == ["250000.5", "-1000", None]


def test_texts_and_arrays_of_pixels(world: World, labelling: Labelling) -> None:
    world.ask("reviews", [{"review": f"{HOSTILE}\nline two", "stars": 3} for _ in range(2)])
    page = labelling(monitor="reviews")
    assert page.inner_text(".text p") == f"{HOSTILE}\nline two"
    pressed(page, "2")
    all_saved(page)
    world.ask("flat", [{"pixels": picture(3).ravel().tolist()}])
    page.goto("/label/flat")
    page.wait_for_function("() => document.querySelector('#pictures img')?.naturalWidth === 28")
    page.keyboard.press("z")
    assert page.inner_text("#zoom-level") == "200 %"
    page.keyboard.press("c")
    assert page.input_value("#contrast") == "180"


def test_a_thousand_classes_are_searched(world: World, labelling: Labelling) -> None:
    world.ask("birds", [{"x": k} for k in range(4)])
    page = labelling(monitor="birds")
    page.keyboard.type("mowe 24")
    assert page.inner_text("[aria-selected=true]") == "Möwe 24"
    page.keyboard.press("ArrowDown")
    assert page.inner_text("[aria-selected=true]") == "Möwe 240"
    pressed(page, "Enter")
    assert page.inner_text("[aria-selected=true]") == "Möwe 240", "the last ones come first"
    pressed(page, "Enter")
    all_saved(page)  # as above
    pressed(page, "Backspace")
    assert "You answered Möwe 240" in page.inner_text("#correcting")
    page.keyboard.type("owl 7")
    pressed(page, "Enter")
    all_saved(page)
    assert [truth for _, _, truth, _ in world.said()] == ["Möwe 240", "Möwe 240", "owl 7"]


def test_a_page_that_stays_open_has_the_classes_of_each_round(world: World, labelling: Labelling) -> None:
    """A version that knows one class more comes while the page waits for tasks; the round before is not forgotten."""
    world.ask("pets", [{"x": 1}], classes=["cat", "dog"])
    page = labelling(monitor="pets")
    shown = page.locator("#form .class-name")
    assert shown.all_inner_texts() == ["cat", "dog"]
    pressed(page, "2")
    all_saved(page)
    world.ask("pets", [{"x": 2}], classes=["cat", "cow", "dog"])
    page.evaluate("dispatchEvent(new Event('online'))")  # else it looks after some seconds
    page.wait_for_selector("#task:not([hidden])")
    assert shown.all_inner_texts() == ["cat", "cow", "dog"]
    assert "has other classes than the one before" in page.inner_text("#notice")
    page.keyboard.press("u")
    assert shown.all_inner_texts() == ["cat", "dog"]
    pressed(page, "Escape")
    pressed(page, "2")
    all_saved(page)
    assert [truth for _, _, truth, _ in world.said()] == ["dog", "cow"]


def test_arrows_and_enter_choose_a_class(world: World, labelling: Labelling) -> None:
    world.ask("digits", pictures(2))
    page = labelling()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    pressed(page, "Enter")
    all_saved(page)
    assert [truth for _, _, truth, _ in world.said()] == ["3"]


def test_nothing_that_is_shown_is_run(world: World, labelling: Labelling) -> None:
    world.ask("hostile", [{HOSTILE: HOSTILE, "row": HOSTILE, "list": [HOSTILE]} for _ in range(2)])
    page = labelling(name=HOSTILE, monitor="hostile")
    assert page.is_visible("#guide-dialog"), "the guide opens by itself the first time"
    assert page.inner_text("#guide-dialog .prose em") == "Look"
    assert page.query_selector_all("#guide-dialog .prose img, #guide-dialog .prose a[href^=javascript]") == []
    page.keyboard.press("Escape")
    assert page.inner_text(".text p") == HOSTILE
    pressed(page, "1")
    all_saved(page)
    assert page.query_selector_all("main img, header img") == []
    assert [(who, truth) for _, who, truth, _ in world.said()] == [(HOSTILE, HOSTILE)]
    page.goto("/label")
    assert HOSTILE in page.inner_text(".who")


def test_a_link_signs_in_and_a_viewer_only_looks(world: World, browser: Any, server: Server, watched: Watched) -> None:
    world.ask("digits", pictures(2))
    token = world.invite("vera", "viewer", ["digits"])
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    watched.watch(page)
    page.goto(f"/sign-in#{token}")
    page.wait_for_selector("text=1 monitor")
    page.click("text=Labelling")
    page.wait_for_url("**/label")
    assert [each.inner_text() for each in page.query_selector_all(".monitor h2")] == ["digits"]
    page.goto("/label/digits")
    assert "may look" in page.inner_text("#rest-title")
    page.click("text=Sign out")
    page.wait_for_url("**/sign-in")
    context.close()
