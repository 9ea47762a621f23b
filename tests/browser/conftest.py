"""A browser, pages that watch themselves, and a world to label. Run by .ci/run, or: pytest tests/browser -n 2.

They need Chromium (Debian: apt-get install chromium), which pip does not bring: so they are not among the tests that
plain ``pytest`` runs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from opmon.web.server import Server
from tests.web.past import watched_world
from tests.web.world import World

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
Open = Callable[..., Page]


def chromium() -> str:
    """Where Chromium is; an error that says how to get it."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise FileNotFoundError("these tests need Chromium: apt-get install chromium, or name it in $CHROMIUM")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, headless=True, args=list(ARGUMENTS))
        yield made
        made.close()


class Watched:
    """What pages complained of, and where they sent requests."""

    def __init__(self, host: str) -> None:
        self.host, self.complaints, self.elsewhere = host, list[str](), list[str]()
        self.is_cut = False

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self._complain(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._check(request.url))

    def _complain(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not (self.is_cut and "ERR_" in text):
            self.complaints.append(text)

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self.host:
            self.elsewhere.append(url)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Monitors with a long past; a module whose tests need others has a world of its own."""
    return watched_world(tmp_path)


@pytest.fixture
def server(world: World) -> Iterator[Server]:
    with world.served() as server:
        yield server


@pytest.fixture
def watched(server: Any) -> Iterator[Watched]:
    """No page may complain, or ask anybody but the server."""
    made = Watched(urlsplit(server.url).netloc)
    yield made
    assert made.complaints == []
    assert made.elsewhere == []


@pytest.fixture
def context_of(browser: Browser, server: Any, watched: Watched) -> Iterator[Callable[..., BrowserContext]]:
    """A browser of somebody's own, signed in."""
    made: list[BrowserContext] = []

    def context(name: str = "ann", token: str | None = None, **options: Any) -> BrowserContext:
        new = browser.new_context(base_url=server.url, **options)
        new.set_default_timeout(15_000)
        new.on("page", watched.watch)
        made.append(new)
        page = new.new_page()
        page.goto("/sign-in?next=/label")
        page.fill("#token" if token else "#name", token or name)
        page.click("text=Sign in >> nth=-1")
        page.wait_for_url("**/label")
        page.close()
        return new

    yield context
    for each in made:
        each.close()


@pytest.fixture
def labelling(context_of: Callable[..., BrowserContext]) -> Open:
    """The labelling page of a monitor, with its first task."""

    def open_page(name: str = "ann", monitor: str = "digits", token: str | None = None, **options: Any) -> Page:
        return page_of(context_of(name, token, **options), monitor)

    return open_page


def page_of(context: BrowserContext, monitor: str = "digits") -> Page:
    page = context.new_page()
    page.goto(f"/label/{monitor}")
    page.wait_for_selector("#task:not([hidden])")
    return page


def current(page: Page) -> str:
    """The key of the task on the page."""
    return str(page.get_attribute("#task", "data-key"))


def all_saved(page: Page) -> None:
    page.wait_for_selector("#saved[data-state=saved]")


def pressed(page: Page, key: str) -> None:
    """Press a key, and wait for the next task, or the end."""
    before = current(page)
    page.keyboard.press(key)
    moved_on(page, before)


def moved_on(page: Page, before: str) -> None:
    """Wait for another task than the one ``before``, or the end."""
    page.wait_for_function(
        """before => {
            const task = document.getElementById("task");
            const rest = document.getElementById("rest-title").textContent;
            return task.hidden ? rest !== "Loading…" : task.dataset.key !== before;
        }""",
        arg=before,
    )
