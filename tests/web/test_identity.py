"""Who may do what: tokens, roles, sessions, names; and what other sites cannot make a browser do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from opmon.attempts import Attempts
from opmon.errors import ConfigError, InputError, NotFoundError
from opmon.store import annotators
from opmon.store.annotators import Annotator
from opmon.web import identity
from opmon.web.secrets import sha256_of, usable_name
from opmon.web.server import Server, require_guard
from tests.conftest import Clock
from tests.web.world import World, monitor

Clients = Callable[..., httpx.Client]
API = "/api/v1"


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "REMEMBERED", 0.0)


def test_a_name_is_enough_until_somebody_has_a_token(world: World, client_of: Clients) -> None:
    by_name, nobody = client_of(name="Zoë"), client_of()
    assert by_name.get(f"{API}/me").json()["name"] == "Zoë"
    assert nobody.get(f"{API}/me").status_code == 401
    assert client_of(name="truth").get(f"{API}/me").status_code == 422, "the name of truth that arrives by itself"
    token = world.invite("ann")
    answer = by_name.get(f"{API}/me")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    told = client_of(token).get(f"{API}/me").json()
    assert told == {"name": "ann", "role": "annotator", "monitors": None, "by": "token", "csrf": ""}
    with world.store.write() as connection:
        annotators.revoke(connection, "ann", datetime.now(UTC))
    assert client_of(token).get(f"{API}/me").status_code == 401
    assert by_name.get(f"{API}/me").status_code == 401, "taking the last token away opens nothing"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example.com"},
        {"host": "["},
        {"x-forwarded-for": "10.0.0.1"},
        {"forwarded": "for=10.0.0.1"},
        {"via": "1.1 proxy"},
        {"x-real-ip": "10.0.0.1"},
        {"x-forwarded-host": "opmon.example.com"},
        {"x-forwarded-proto": "https"},
    ],
)
def test_without_tokens_only_this_machine_may_ask(client_of: Clients, headers: dict[str, str]) -> None:
    assert client_of(name="ann", headers=headers).get(f"{API}/me").status_code == 403


def test_a_viewer_looks_and_labels_nothing(world: World, client_of: Clients) -> None:
    vera = client_of(world.invite("vera", "viewer"))
    assert vera.get(f"{API}/monitors/digits").json()["progress"]["asked"] == 12
    for path, body in (
        ("monitors/digits/take", {"count": 1}),
        ("answers", {"answers": [{"key": "t1-0", "truth": "1"}]}),
    ):
        answer = vera.post(f"{API}/{path}", json=body)
        assert answer.status_code == 403
        assert "may look and not label" in answer.json()["error"]
    ann = client_of(world.invite("ann"))
    assert ann.get(f"{API}/monitors/digits").json()["progress"]["asked"] is None, "it would tell which tasks test her"


def test_somebody_limited_to_a_monitor_knows_of_no_other(sqlite: str, tmp_path: Path) -> None:
    world = World.of(sqlite, tmp_path, {"a": monitor(classes=["x", "y"]), "b": monitor(classes=["x", "y"])})
    world.ask("a", [{"text": "short"}])
    world.ask("b", [{"pixels": [[0.0] * 9] * 9}])
    both, only_a = world.invite("both"), world.invite("ann", monitors=["a"])
    with world.served() as server, httpx.Client(base_url=server.url) as client:

        def ask(token: str, path: str, body: object = None) -> httpx.Response:
            method = "GET" if body is None else "POST"
            return client.request(method, f"{API}/{path}", json=body, headers={"authorization": f"Bearer {token}"})

        (foreign,) = ask(both, "monitors/b/take", {"count": 1}).json()["tasks"]
        assert [each["name"] for each in ask(only_a, "monitors").json()["monitors"]] == ["a"]
        unknown = ask(only_a, "monitors/nothing").json()["error"].replace("nothing", "b")
        assert ask(only_a, "monitors/b").json()["error"] == unknown, "as if there were none"
        assert ask(only_a, "monitors/b/take", {"count": 1}).status_code == 404
        assert ask(both, foreign["fields"][0]["url"].removeprefix(f"{API}/")).status_code == 200
        assert ask(only_a, foreign["fields"][0]["url"].removeprefix(f"{API}/")).status_code == 404
        told = ask(only_a, "answers", {"answers": [{"key": foreign["key"], "truth": "x"}]}).json()
        assert told["recorded"] == 0
        assert foreign["key"] in told["refused"]
    assert world.said() == []


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not(world: World, client_of: Clients) -> None:
    good = client_of(world.invite("ann"))
    assert good.get(f"{API}/me").status_code == 200
    wrong = client_of("opmon_wrong")
    assert [wrong.get(f"{API}/me").status_code for _ in range(11)] == [401] * 10 + [429]
    assert int(wrong.get(f"{API}/me").headers["retry-after"]) > 0
    assert good.get(f"{API}/me").status_code == 200
    new = client_of(world.invite("ben"))
    assert new.get(f"{API}/me").status_code == 200, "whoever shares an address with a fool is let in"
    assert client_of(headers={"authorization": "Basic x"}).get(f"{API}/me").status_code == 401


def test_attempts_are_counted_for_a_minute() -> None:
    now = [0.0]
    attempts = Attempts(most=2, seconds=60, monotonic=lambda: now[0])
    for _ in range(2):
        assert attempts.seconds_to_wait("a", "x") == 0
        attempts.was_wrong("a")
    assert attempts.seconds_to_wait("a", "x") == 60
    assert attempts.seconds_to_wait("b", "x") == 0
    now[0] = 61.0
    assert attempts.seconds_to_wait("a", "x") == 0


def signed_in(client: httpx.Client, **given: str) -> httpx.Response:
    return client.post("/sign-in", data=given)


def csrf_in(client: httpx.Client) -> str:
    found = re.search(r'name="csrf" value="(\w+)"', client.get("/label").text)
    assert found
    return found[1]


def test_a_browser_signs_in_with_a_token_and_out_again(world: World, client_of: Clients) -> None:
    token, browser = world.invite("ann"), client_of()
    assert browser.get("/label").headers["location"] == "/sign-in?next=/label"
    assert signed_in(browser, token="opmon_wrong").status_code == 401
    answer = signed_in(browser, token=f" {token} ", next="/label/digits")
    assert (answer.status_code, answer.headers["location"]) == (303, "/label/digits")
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert token not in cookie
    assert browser.get(f"{API}/me").json()["by"] == "session"
    assert browser.post("/sign-out", data={"csrf": "wrong"}).status_code == 403
    old = dict(browser.cookies)
    assert browser.post("/sign-out", data={"csrf": csrf_in(browser)}).status_code == 303
    assert client_of(cookies=old).get(f"{API}/me").status_code == 401, "the session itself is over"


def cookie_of(browser: httpx.Client) -> tuple[str, str]:
    ((name, secret),) = browser.cookies.items()
    return name, secret


@pytest.mark.parametrize(
    "sent",
    [
        "opmon_session={own}",
        "{name}={own}; opmon_session=opmon_other",
        "opmon_session={own}; opmon_session=opmon_other",
        "opmon_session=opmon_other; opmon_session={own}",
        "opmon_session_00000000=opmon_other; {name}=opmon_old; {name}={own}",
    ],
)
def test_sessions_of_other_opmons_on_the_host_are_passed_over(client_of: Clients, sent: str) -> None:
    """Browsers send the cookies of shorter paths and of other ports along."""
    browser = client_of()
    signed_in(browser, name="ann")
    name, own = cookie_of(browser)
    both = client_of(headers={"cookie": sent.format(name=name, own=own)})
    assert both.get(f"{API}/me").json()["name"] == "ann"
    csrf = csrf_in(both)
    assert both.post(f"{API}/monitors/digits/take", json={}, headers={"x-csrf-token": csrf}).status_code == 200
    assert both.post("/sign-out", data={"csrf": csrf}).status_code == 303
    assert both.get(f"{API}/me").status_code == 401


def test_each_port_has_a_cookie_of_its_own(client_of: Clients) -> None:
    names = set()
    for host in ("127.0.0.1:8080", "127.0.0.1:9090", "localhost:8080"):
        browser = client_of(headers={"host": host})
        signed_in(browser, name="ann")
        names.add(cookie_of(browser)[0])
    assert len(names) == 3
    assert all(re.fullmatch("opmon_session_[0-9a-f]{8}", each) for each in names)


def test_who_signs_in_as_somebody_else_and_out_is_out(client_of: Clients) -> None:
    """With a session that is still kept under the name of an earlier version, too."""
    first = client_of()
    signed_in(first, name="ann")
    browser = client_of(cookies={"opmon_session": cookie_of(first)[1]})
    assert browser.get(f"{API}/me").json()["name"] == "ann"
    answer = signed_in(browser, name="ben")
    assert any('opmon_session=""; ' in each for each in answer.headers.get_list("set-cookie"))
    assert browser.get(f"{API}/me").json()["name"] == "ben"
    browser.post("/sign-out", data={"csrf": csrf_in(browser)})
    assert browser.get(f"{API}/me").status_code == 401
    assert first.get(f"{API}/me").status_code == 401


def test_revoking_ends_sessions_and_a_new_token_revives_none(world: World, client_of: Clients) -> None:
    browser = client_of()
    signed_in(browser, token=world.invite("ann"))
    assert browser.get(f"{API}/me").status_code == 200
    with world.store.write() as connection:
        annotators.revoke(connection, "ann", datetime.now(UTC))
    assert browser.get(f"{API}/me").status_code == 401
    world.invite("ann")
    assert browser.get(f"{API}/me").status_code == 401


def test_a_session_of_a_name_ends_with_the_first_token(world: World, client_of: Clients) -> None:
    browser = client_of()
    assert signed_in(browser, name="ann").status_code == 303
    assert browser.get(f"{API}/me").status_code == 200
    world.invite("ben")
    assert browser.get(f"{API}/me").status_code == 401


def test_sessions_run_out(world: World, client_of: Clients, clock: Clock) -> None:
    with world.store.write() as connection:
        session = annotators.Session("ann", clock(), None)
        annotators.open_session(connection, sha256_of("s"), session, clock())
        assert annotators.session_of(connection, sha256_of("s"), clock()) is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"x-csrf-token": "wrong"}, 403),
        ({"x-csrf-token": "{csrf}", "origin": "https://evil.example.com"}, 403),
        ({"x-csrf-token": "{csrf}", "origin": "null"}, 403),
        ({"x-csrf-token": "{csrf}", "sec-fetch-site": "cross-site"}, 403),
        ({"x-csrf-token": "{csrf}"}, 200),
    ],
)
def test_what_changes_something_needs_the_pages_own_token(
    client_of: Clients, headers: dict[str, str], status: int
) -> None:
    browser = client_of()
    signed_in(browser, name="ann")
    csrf = csrf_in(browser)
    own = {name: value.format(csrf=csrf) for name, value in headers.items()}
    assert browser.post(f"{API}/monitors/digits/take", json={"count": 1}, headers=own).status_code == status


def test_other_sites_cannot_sign_a_browser_in(client_of: Clients) -> None:
    browser = client_of(headers={"origin": "https://evil.example.com"})
    assert signed_in(browser, name="ann").status_code == 403


@pytest.mark.parametrize(
    "target", ["//evil.example.com", "https://evil.example.com", "/\\evil.example.com", "x", "/a\r\nb"]
)
def test_signing_in_leads_nowhere_else(client_of: Clients, target: str) -> None:
    assert signed_in(client_of(), name="ann", next=target).headers["location"] == "/"


def test_other_machines_are_let_in_only_by_token(sqlite: str, tmp_path: Path) -> None:
    world = World.of(sqlite, tmp_path, listen="0.0.0.0:0")
    with pytest.raises(ConfigError, match="opmon annotators add"):
        Server(world.settings, world.store)
    world.invite("ann")
    require_guard(world.settings, world.store)


def test_behind_a_proxy_that_hides_itself_a_name_is_not_enough(
    sqlite: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """nginx asks for the pages as somebody on this machine would, unless it is told to say otherwise."""
    near = World.of(sqlite, tmp_path)
    with near.served() as server, httpx.Client(base_url=server.url) as early:
        signed_in(early, name="ann")
        cookie = "=".join(cookie_of(early))
    world = World.of(sqlite, tmp_path, url="https://mlops.example.com/team/opmon")
    with world.served() as server, httpx.Client(base_url=f"http://127.0.0.1:{server.address[1]}") as client:
        assert "until somebody runs opmon annotators add NAME" in caplog.text
        by_name = client.get(f"{API}/me", headers={"opmon-annotator": "eve"})
        by_form = signed_in(client, name="eve")
        by_session = client.get(f"{API}/me", headers={"cookie": cookie})
        for answer in (by_name, by_form, by_session):
            assert answer.status_code == 403
            assert "opmon annotators add NAME" in answer.text
        assert client.get("/metrics").status_code == 403
        assert client.get("/healthz").status_code == 200
        assert client.get(f"{API}/me", headers={"authorization": f"Bearer {world.invite('ann')}"}).status_code == 200


@pytest.mark.parametrize("url", ["http://localhost:8080", "http://127.0.0.1:8080/opmon", "http://[::1]:8080"])
def test_an_address_of_this_machine_leads_nobody_else_here(sqlite: str, tmp_path: Path, url: str) -> None:
    world = World.of(sqlite, tmp_path, url=url)
    with world.served() as server, httpx.Client(base_url=f"http://127.0.0.1:{server.address[1]}") as client:
        assert client.get(f"{API}/me", headers={"opmon-annotator": "ann"}).status_code == 200


def test_names_and_roles_that_cannot_be(world: World) -> None:
    for name in ("", " ", "a\0b", "x" * 201, "tab\u200b", "truth"):
        with pytest.raises(InputError):
            usable_name(name)
    world.invite("ann")
    with pytest.raises(InputError, match="has a token already"):
        world.invite("ann")
    with world.store.write() as connection:
        with pytest.raises(InputError, match="the roles are"):
            annotators.add(connection, Annotator("ben", "king", None, datetime.now(UTC)), "x")
        with pytest.raises(NotFoundError, match="those who have: ann"):
            annotators.revoke(connection, "ben", datetime.now(UTC))
