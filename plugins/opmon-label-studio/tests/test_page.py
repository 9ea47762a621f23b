"""Label Studio's own page in a browser: somebody labels there what opmon has drawn.

It needs Chromium, as the tests of opmon's own pages do (Debian: apt-get install chromium).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from monitored import state, written
from playwright.sync_api import Page, expect, sync_playwright
from real_studio import QUIET, Studio

from opmon.monitor import Monitor
from opmon.store.schema import labels, tasks

WAIT = 60_000


@pytest.fixture
def page(studio: Studio) -> Iterator[Page]:
    """A page of Label Studio's, of somebody who has signed in."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "this test needs Chromium: apt-get install chromium, or name it in $CHROMIUM"
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=studio.url).new_page()
        page.set_default_timeout(WAIT)
        page.goto("/user/login/")
        page.fill("input[name=email]", QUIET["LABEL_STUDIO_USERNAME"])
        page.fill("input[name=password]", QUIET["LABEL_STUDIO_PASSWORD"])
        page.click("button[type=submit]")
        page.wait_for_url(lambda url: "/user/login" not in url)
        yield page
        browser.close()


def input_shown(page: Page, folder: Path, others: dict[str, str | None]) -> str:
    """Which input the page shows, by its numbers: another one than those that were labelled."""
    inputs = pq.read_table(folder / "production" / "a.parquet").to_pylist()
    by_numbers = {json.dumps([round(number, 6) for number in row["x"]]): row["id"] for row in inputs}
    cell = page.locator("td").filter(has_text="[")
    known = [numbers for numbers, name in by_numbers.items() if name in others]

    def read() -> str:
        return json.dumps([round(number, 6) for number in json.loads(cell.inner_text())])

    for _ in range(WAIT // 100):
        if cell.count() == 1 and (numbers := read()) not in known:
            return str(by_numbers[numbers])
        page.wait_for_timeout(100)
    raise AssertionError(f"the page shows no further input: {page.inner_text('body')[:500]}")


def test_what_is_labelled_in_label_studios_page_is_there_after_one_poll(
    folder: Path, studio: Studio, page: Page
) -> None:
    monitor = Monitor.from_yaml(written(folder, studio, "page", asked=3))
    assert monitor.advance().problems == []
    page.goto("/projects/")
    page.get_by_text("opmon: page").click()
    page.get_by_role("button", name="Label All Tasks").click()
    said: dict[str, str | None] = {}

    said[input_shown(page, folder, said)] = "2"
    page.get_by_role("radio").nth(2).check()
    page.get_by_role("button", name="Submit current annotation").click()

    said[input_shown(page, folder, said)] = "3"  # by the keyboard alone
    page.keyboard.press("3")
    expect(page.get_by_role("radio").nth(3)).to_be_checked()
    page.keyboard.press("Control+Enter")

    said[input_shown(page, folder, said)] = None
    page.get_by_role("button", name="Skip").click()
    expect(page.get_by_text("No more tasks")).to_be_visible(timeout=WAIT)

    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        query = sa.select(tasks.c.input_id, labels.c.truth, labels.c.annotator).join(labels)
        heard = connection.execute(query).all()
    assert {row.input_id: row.truth for row in heard} == said
    assert {row.annotator for row in heard} == {QUIET["LABEL_STUDIO_USERNAME"]}
    assert state(monitor) == "closed"
