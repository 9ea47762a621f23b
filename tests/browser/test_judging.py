"""Judging outputs and choosing several classes, as people do it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import all_saved, current, page_of, pressed
from tests.web.world import World, encoded, monitor, picture

Labelling = Callable[..., Page]
HOSTILE = "<img src=x onerror=alert(1)>"
TOPICS = ["delivery", "price", "quality", "staff", "returns", "app"]
MANY = [f"{kind} {number}" for kind in ("tern", "gull", "Möwe", "owl") for number in range(40)]
ANSWER = (
    "The parcel left our warehouse on Monday. It should be with you by Thursday; if not, call us.\n\n- Kind regards"
)


def judged(scale: str, **keys: Any) -> dict[str, Any]:
    columns = {"prediction": "answer", "text": "prompt"}
    return monitor(**{"problem": "judged", "columns": columns, "labels": {"scale": scale}, **keys})


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    monitors = {
        "support": judged("pass_fail"),
        "summaries": judged("score"),
        "tone": judged("stars"),
        "ranking": judged("pass_fail", columns={"prediction": "answer"}),
        "drawings": judged("pass_fail", columns={"prediction": "answer"}),
        "topics": monitor(problem="multilabel", classes=TOPICS, columns={"text": "review"}),
        "birds": monitor(problem="multilabel", classes=MANY),
    }
    return World.of(sqlite, tmp_path, monitors)


def said(world: World) -> list[str | None]:
    return [truth for _, _, truth, _ in world.said()]


def asked(count: int, answer: object = ANSWER) -> list[dict[str, Any]]:
    prompt = "Where is my parcel? I ordered it two weeks ago and nobody answers the phone. Order {}."
    return [{"prompt": prompt.format(k), "channel": "chat", "answer": answer} for k in range(count)]


def test_outputs_pass_and_fail_by_key(world: World, labelling: Labelling) -> None:
    world.ask("support", asked(5))
    page = labelling(monitor="support")
    assert ANSWER.split("\n")[0] in page.inner_text("#output")
    assert "The model's output" in page.inner_text("#output")
    assert "Where is my parcel?" in page.inner_text("#texts")
    assert ANSWER.split("\n")[0] not in page.inner_text("#texts")
    for key in "pfyn":
        pressed(page, key)
    all_saved(page)
    assert said(world) == ["pass", "fail", "pass", "fail"]
    pressed(page, "u")
    assert "You answered fail" in page.inner_text("#correcting")
    assert page.inner_text(".class[aria-pressed=true]").split()[-1].lower() == "fail"
    pressed(page, "p")
    all_saved(page)
    assert said(world)[-1] == "pass"


def test_scores_by_digit_or_written(world: World, labelling: Labelling) -> None:
    world.ask("summaries", asked(5))
    page = labelling(monitor="summaries")
    for key in ("7", "p", "f"):
        pressed(page, key)
    page.keyboard.type(".8512")
    assert page.input_value("#written") == ".8512"
    pressed(page, "Enter")
    page.keyboard.type(".")
    page.keyboard.type("5e1")
    page.keyboard.press("Enter")
    assert "not between 0 and 1" in page.inner_text(".problem")
    page.fill("#written", "0,3")
    pressed(page, "Enter")
    all_saved(page)
    assert said(world) == ["0.7", "1", "0", "0.8512", "0.3"]


def test_what_was_scored_is_marked_again(world: World, labelling: Labelling) -> None:
    world.ask("summaries", asked(2))
    world.ask("tone", asked(2))
    page = labelling(monitor="summaries")
    pressed(page, "7")
    all_saved(page)
    page.reload()
    page.wait_for_selector("#undo:not([disabled])")
    pressed(page, "u")
    assert page.inner_text(".class[aria-pressed=true] .class-name") == "0.7"
    page.goto("/label/tone")
    page.wait_for_selector("#task:not([hidden])")
    pressed(page, "4")
    all_saved(page)
    assert said(world)[-1] == "4 of 5"
    page.reload()
    page.wait_for_selector("#undo:not([disabled])")
    pressed(page, "u")
    assert page.get_attribute(".class[aria-pressed=true]", "aria-label") == "4 stars"


def test_outputs_of_every_kind_are_shown(world: World, labelling: Labelling) -> None:
    outputs: list[Any] = [
        ["boots", "sandals", HOSTILE],
        [{"label": "cat", "box": [1, 2, 30, 40]}],
        {"deep": {"er": list(range(50))}},
        "",
        None,
        HOSTILE,
        0.25,
        "مرحبا",
    ]
    world.ask("ranking", [{"query": "shoes", "answer": output} for output in outputs])
    page = labelling(monitor="ranking")
    seen = []
    for _ in outputs:
        seen.append(page.inner_text("#output-value"))
        assert "shoes" in page.inner_text("#values")
        pressed(page, "p")
    assert seen[0].split("\n") == ["boots", "sandals", HOSTILE]
    assert '"label": "cat"' in seen[1]
    assert seen[3:] == ["an empty text", "nothing", HOSTILE, "0.25", "مرحبا"]
    assert page.query_selector("#output-value img") is None


def test_a_drawn_output_is_a_picture(world: World, labelling: Labelling) -> None:
    world.ask("drawings", [{"wish": "a bar", "answer": encoded(picture(4))}])
    page = labelling(monitor="drawings")
    page.wait_for_function("() => document.querySelector('#pictures img')?.naturalWidth === 28")
    assert page.is_hidden("#output")
    pressed(page, "p")
    all_saved(page)
    assert said(world) == ["pass"]


def test_several_classes_by_key_and_none(world: World, labelling: Labelling) -> None:
    world.ask("topics", [{"review": f"Late, and dear too. {k}"} for k in range(4)])
    page = labelling(monitor="topics")
    first = current(page)
    for key in "132":
        page.keyboard.press(key)
    page.keyboard.press("3")
    assert current(page) == first, "keys turn classes on and off, and answer nothing"
    assert "these 2" in page.inner_text(".choosing .main-button")
    pressed(page, "Enter")
    assert "None of them" in page.inner_text(".choosing .main-button")
    pressed(page, "Enter")
    all_saved(page)
    assert said(world) == ['["delivery", "price"]', "[]"]
    pressed(page, "u")
    assert "You answered none of them" in page.inner_text("#correcting")
    pressed(page, "u")
    assert "You answered delivery, price" in page.inner_text("#correcting")
    assert page.locator(".class[aria-pressed=true]").count() == 2
    page.keyboard.press("6")
    pressed(page, "Enter")
    all_saved(page)
    assert said(world)[-1] == '["app", "delivery", "price"]'


def test_several_of_many_are_searched_for(world: World, labelling: Labelling) -> None:
    world.ask("birds", [{"note": "flock"}, {"note": "pair"}])
    page = labelling(monitor="birds")
    page.keyboard.press("/")
    for words in ("owl 39", "mowe 7"):
        page.keyboard.type(words)
        page.keyboard.press("Enter")
    assert page.locator(".class[aria-pressed=true]").count() == 2
    pressed(page, "Enter")
    all_saved(page)
    assert said(world) == ['["Möwe 7", "owl 39"]']


@pytest.mark.parametrize(("width", "height"), [(360, 740), (1280, 800)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_form_fits(
    world: World, context_of: Callable[..., BrowserContext], width: int, height: int, scheme: str
) -> None:
    """Nothing is cut off; with $OPMON_SCREENSHOTS the pages are kept to be looked at."""
    for name in ("support", "summaries", "tone"):
        world.ask(name, asked(2))
    world.ask("ranking", [{"query": "shoes", "answer": ["boots", "sandals", "slippers"]}] * 2)
    world.ask("topics", [{"review": "It came late, and the staff were rude, but the price was right. " * 3}] * 2)
    world.ask("birds", [{"note": "flock"}] * 2)
    phone = width < 500
    context = context_of(
        viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=phone, is_mobile=phone
    )
    for name in ("support", "summaries", "tone", "ranking", "topics", "birds"):
        page = page_of(context, name)
        if name == "topics":
            page.locator(".class").nth(1).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        folder = os.environ.get("OPMON_SCREENSHOTS")
        if folder:
            page.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png")
        page.close()
