"""Moments as readers have them: in their own zone also inside of sentences, in the language of the page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import page_of
from tests.made_once import new_opmon_database
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, monitor

Contexts = Callable[..., BrowserContext]
THERE = {"timezone_id": "Pacific/Auckland", "locale": "de-DE"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A monitor whose last cycle was days ago, and one to label."""
    monitors = {
        "quiet": monitor(classes=list(DIGITS), rules=[FLOOR]),
        "orders": monitor(classes=["good", "bad"], inputs={"features": ["at", "day"]}),
    }
    made = World.of(new_opmon_database(tmp_path / "opmon.db"), tmp_path, monitors)
    last = datetime.now(UTC).replace(hour=23, minute=30, second=0, microsecond=0) - timedelta(days=4)
    live_through(made.store, Past("quiet", 12, until=last))
    return made


@pytest.mark.parametrize("path", ["/", "/monitors/quiet"])
def test_sentences_tell_moments_in_the_readers_zone(context_of: Contexts, path: str) -> None:
    page = context_of(**THERE).new_page()
    page.goto(path)
    silence = page.locator("li, span", has_text="no cycle has ended since").first
    silence.locator("time").wait_for()
    told = silence.inner_text()
    assert "UTC" not in told
    moment = datetime.fromisoformat(str(silence.locator("time").get_attribute("datetime")))
    assert f"{moment.astimezone(ZoneInfo('Pacific/Auckland')):%d.%m.%Y, %H:%M}" in told


def test_how_long_ago_is_told_in_the_language_of_the_page(context_of: Contexts) -> None:
    page = context_of(**THERE).new_page()
    page.goto("/")
    assert "days ago" in page.inner_text("#monitors tbody tr:has-text('quiet')")


def test_a_moment_to_label_is_in_the_annotators_zone(world: World, context_of: Contexts) -> None:
    world.ask("orders", [{"at": "2026-01-15T22:07:00+00:00", "day": "2026-01-15"}])
    page = page_of(context_of(**THERE), "orders")
    values = page.locator("#values td")
    assert values.all_inner_texts() == ["16.01.2026, 11:07:00", "2026-01-15"]
    assert values.locator("time").get_attribute("title") == "2026-01-15T22:07:00+00:00"
