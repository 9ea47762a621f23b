"""People sign in at their provider in a browser: they land on the page that they wanted, as what their groups may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from opmon.web.cookies import COOKIE
from opmon.web.pages import provider as pages
from opmon.web.server import Server
from tests.made_once import new_opmon_database
from tests.security.attacked import free_port
from tests.security.provider import CLIENT, SECRET, Provider, running
from tests.web.world import World, monitor

ROLES: dict[str, Any] = {"ops": "operator", "labellers": {"role": "annotator", "monitors": ["a"]}}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running(Provider()) as made:
        yield made


@pytest.fixture
def server(provider: Provider, tmp_path: Path) -> Iterator[Server]:
    new_opmon_database(tmp_path / "opmon.db")
    oidc = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET, "roles": ROLES}
    monitors = {name: monitor(classes=["x", "y"]) for name in ("a", "b")}
    world = World.of(f"sqlite:///{tmp_path}/opmon.db", tmp_path, monitors, listen=f"127.0.0.1:{free_port()}", oidc=oidc)
    with world.served() as server:
        yield server


@pytest.fixture
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=server.url)
    made.set_default_timeout(15_000)
    yield made
    made.close()


def signed_in(context: BrowserContext, wanted: str) -> Page:
    """A page that somebody wanted who was not signed in, and got by way of the provider."""
    page = context.new_page()
    page.goto(wanted)
    assert "/sign-in?next=" in page.url
    page.click("text=Sign in at 127.0.0.1")
    page.wait_for_url(f"**{wanted}")
    return page


def me(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.request.get("/api/v1/me").json()
    return found


def test_an_operator_lands_on_the_page_and_signs_out(
    context: BrowserContext, server: Server, provider: Provider
) -> None:
    page = signed_in(context, "/monitors/a/rounds")
    assert me(page) | {"csrf": ""} == {"name": "ann", "role": "operator", "monitors": None, "by": "session", "csrf": ""}
    assert provider.asked.count("/token") == 1
    cookies = {cookie["name"]: cookie for cookie in context.cookies()}
    assert pages.COOKIE not in cookies, "the secret of the sign-in is gone"
    (session,) = (each for name, each in cookies.items() if name.startswith(COOKIE))
    assert (session["httpOnly"], session["sameSite"]) == (True, "Strict")
    for visited in page.evaluate("performance.getEntries().map(entry => entry.name)"):
        assert "code=" not in visited
    page.click("form.person button")
    page.wait_for_url(lambda url: url.endswith("/sign-in?out=1"))
    assert page.get_attribute("text=Sign out of", "href").startswith(f"{provider.issuer}/end?")  # type: ignore[union-attr]
    page.go_back()
    page.wait_for_url(lambda url: "/sign-in?" in url)
    assert page.request.get("/api/v1/me").status == 401


def test_an_annotator_sees_what_the_group_may_and_no_more(context: BrowserContext, provider: Provider) -> None:
    provider.person = {"preferred_username": "Zoë", "groups": ["labellers"]}
    page = signed_in(context, "/label/a")
    assert me(page) | {"csrf": ""} == {
        "name": "Zoë",
        "role": "annotator",
        "monitors": ["a"],
        "by": "session",
        "csrf": "",
    }
    for path, status in (("/monitors/a", 403), ("/label/b", 404)):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == status, path


def test_who_is_in_no_group_is_told_so_and_nobody_is_sent_elsewhere(
    context: BrowserContext, server: Server, provider: Provider
) -> None:
    provider.person["groups"] = ["others"]
    page = context.new_page()
    page.goto("/sign-in?next=https://evil.example.com/")
    page.click("text=Sign in at 127.0.0.1")
    page.wait_for_selector("[role=alert]")
    assert "is in no group that may use opmon" in page.inner_text("[role=alert]")
    provider.person["groups"] = ["ops"]
    page.goto("/sign-in?next=https://evil.example.com/")
    page.click("text=Sign in at 127.0.0.1")
    page.wait_for_url(f"{server.url}/")
