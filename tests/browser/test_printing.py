"""Pages, reports and the pages in MLflow on paper: dark on white, whatever the browser looks like."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from opmon.queries.period import period_view
from opmon.web.printed import printed
from tests.web.world import World

Contexts = Callable[..., BrowserContext]
A4 = {"width": 718, "height": 1000}


def lightness(page: Page, selector: str, key: str) -> float:
    told = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{key}")
    return sum(map(int, re.findall(r"\d+", told)[:3])) / (3 * 255)


def assert_dark_on_white(page: Page) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    assert lightness(page, "body", "color") < 0.3
    assert lightness(page, ".card", "backgroundColor") == 1
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


@pytest.mark.parametrize("path", ["/", "/monitors/sinking", "/monitors/sinking/rounds/59", "/docs"])
def test_pages_are_printed_dark_on_white(context_of: Contexts, path: str) -> None:
    page = context_of(color_scheme="dark", viewport=A4).new_page()
    page.goto(path)
    assert lightness(page, "body", "color") > 0.7
    assert_dark_on_white(page)
    assert not page.is_visible(".bar")
    assert page.locator("form.acts-on:visible").count() == 0


def test_a_printed_table_has_all_columns(context_of: Contexts) -> None:
    page = context_of(viewport=A4).new_page()
    page.goto("/monitors/sinking/rounds")
    assert not page.is_visible("th:text-is('Failures')")
    page.emulate_media(media="print")
    assert page.is_visible("th:text-is('Failures')")
    assert page.evaluate("document.documentElement.scrollWidth") <= A4["width"]


def test_no_word_is_cut_on_paper_or_a_phone(context_of: Contexts) -> None:
    """A status is one line high, wherever its table has little room."""
    page = context_of(viewport=A4).new_page()
    page.goto("/monitors/sinking")
    heights = "[...document.querySelectorAll('.drift td .status')].map(each => each.getBoundingClientRect().height)"
    for media, width in (("print", 718), ("screen", 360), ("screen", 900)):
        page.emulate_media(media=media)
        page.set_viewport_size({"width": width, "height": 1000})
        line = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.drift td .status')).lineHeight)")
        assert max(page.evaluate(heights)) < 1.5 * line, (media, width)


def test_not_scheduled_is_one_word_a_line(context_of: Contexts) -> None:
    page = context_of(viewport={"width": 1280, "height": 800}).new_page()
    page.goto("/")
    cell = page.locator("#monitors tbody tr:has-text('fresh') td").last
    assert cell.inner_text() == "not scheduled"
    high = cell.locator("span").evaluate("each => each.getClientRects().length")
    assert high <= 2


def test_a_report_is_printed_dark_on_white(browser: Browser, world: World, tmp_path: Path) -> None:
    """From its file, as it was mailed."""
    now = datetime.now(UTC)
    settings = world.settings.monitor("sinking")
    with world.store.read() as connection:
        period = period_view(
            connection, settings.watch, settings.plans_from, settings.threshold, now - timedelta(days=90), now
        )
    file = tmp_path / "report.html"
    file.write_text(printed(period, settings.quantity))
    page = browser.new_context(viewport=A4, color_scheme="dark").new_page()
    page.goto(file.as_uri())
    assert_dark_on_white(page)
    page.context.close()
