"""A proxy in front of opmon says who asks; nobody else may."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Request

from opmon.config.identity import IdentitySettings
from opmon.errors import ConfigError
from opmon.store import annotators
from opmon.web import identity
from opmon.web.origin import origin_of
from opmon.web.server import Server
from tests.web.world import World, monitor

API = "/api/v1"
IDENTITY: dict[str, Any] = {
    "header": "X-Forwarded-User",
    "groups": "X-Forwarded-Groups",
    "trusted": ["127.0.0.0/8"],
    "roles": {
        "ops": "operator",
        "labellers": {"role": "annotator", "monitors": ["a"]},
        "more": {"role": "annotator", "monitors": ["b"]},
    },
}
MONITORS = {name: monitor(classes=["x", "y"]) for name in ("a", "b", "c")}


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "REMEMBERED", 0.0)


def proxied(database: str, folder: Path, **keys: object) -> World:
    return World.of(database, folder, MONITORS, identity={**IDENTITY, **keys})


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    return proxied(sqlite, tmp_path)


@pytest.fixture
def server(world: World) -> Iterator[Server]:
    with world.served() as server:
        yield server


def me(server: Server, *headers: tuple[str, str]) -> httpx.Response:
    return httpx.get(f"{server.url}{API}/me", headers=[(name, value.encode()) for name, value in headers])


def test_people_are_who_the_proxy_says_with_what_their_groups_may(server: Server) -> None:
    ops = me(server, ("x-forwarded-user", "Zoë"), ("x-forwarded-groups", "all, ops"))
    told = ops.json()
    assert told.pop("csrf"), "what its pages send with all that they change"
    assert told == {"name": "Zoë", "role": "operator", "monitors": None, "by": "proxy"}
    both = me(server, ("x-forwarded-user", "ann"), ("x-forwarded-groups", "labellers,more"))
    assert (both.json()["role"], both.json()["monitors"]) == ("annotator", ["a", "b"])
    none = me(server, ("x-forwarded-user", "ben"), ("x-forwarded-groups", "others"))
    assert none.status_code == 403
    assert "in no group" in none.json()["error"]
    assert me(server).status_code == 401, "nor is a name enough"
    assert me(server, ("opmon-annotator", "ann")).status_code == 401


def test_who_was_invited_has_that_role_and_who_was_revoked_none(world: World, server: Server) -> None:
    token = world.invite("ann", "viewer")
    by_proxy = ("x-forwarded-user", "ann"), ("x-forwarded-groups", "ops")
    assert me(server, *by_proxy).json()["role"] == "viewer"
    assert me(server, ("authorization", f"Bearer {token}")).json()["by"] == "token"
    with world.store.write() as connection:
        annotators.revoke(connection, "ann", datetime.now(UTC))
    assert me(server, *by_proxy).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        [("x-forwarded-user", "ann"), ("x-forwarded-user", "root")],
        [("x-forwarded-user", "")],
        [("x-forwarded-user", "truth")],
        [("x-forwarded-user", "x" * 500)],
    ],
)
def test_headers_that_name_nobody_or_two_are_refused(server: Server, headers: list[tuple[str, str]]) -> None:
    assert me(server, *headers, ("x-forwarded-groups", "ops")).status_code == 403


def test_only_the_proxy_is_believed(sqlite: str, tmp_path: Path) -> None:
    with proxied(sqlite, tmp_path, trusted=["10.1.0.0/16"]).served() as server:
        told = me(server, ("x-forwarded-user", "ann"), ("x-forwarded-groups", "ops"))
    assert told.status_code == 403
    assert "may not say" in told.json()["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"x-csrf-token": "x"}, 403),
        ({"x-csrf-token": "own", "origin": "https://evil.example.com"}, 403),
        ({"x-csrf-token": "own", "sec-fetch-site": "cross-site"}, 403),
        ({"x-csrf-token": "own", "sec-fetch-site": "same-site"}, 403),
        ({"x-csrf-token": "own"}, 200),
    ],
)
def test_other_sites_cannot_use_the_proxys_cookie(server: Server, headers: dict[str, str], status: int) -> None:
    own = {"x-forwarded-user": "ann", "x-forwarded-groups": "ops"}
    page = httpx.get(f"{server.url}/label/a", headers=own).text
    if headers.get("x-csrf-token") == "own":
        headers = {**headers, "x-csrf-token": page.split("&#34;csrf&#34;: &#34;")[1].split("&#34;")[0]}
    assert httpx.post(f"{server.url}{API}/monitors/a/take", json={}, headers=own | headers).status_code == status


def test_attempts_are_counted_by_the_address_that_the_proxy_names(server: Server) -> None:
    def wrong(*told: str) -> int:
        own = [("authorization", "Bearer opmon_wrong"), *(("x-forwarded-for", each) for each in told)]
        return httpx.get(f"{server.url}{API}/me", headers=own).status_code

    assert [wrong("192.0.2.1") for _ in range(11)][-1] == 429
    assert wrong("192.0.2.2") == 401
    assert wrong("192.0.2.2, 192.0.2.1") == 429, "what stands before the last anybody may claim"
    assert wrong("192.0.2.1, 127.0.0.9") == 429, "but for proxies"


@pytest.mark.parametrize(
    ("told", "origin"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7:51234", "203.0.113.7"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("192.0.2.9:1, 203.0.113.7:51234, 10.0.0.1:443", "203.0.113.7"),
        ("203.0.113.7, unknown", "10.0.0.1"),
        ("203.0.113.7:x", "10.0.0.1"),
        ("[203.0.113.7", "10.0.0.1"),
        ("", "10.0.0.1"),
    ],
)
def test_the_address_is_known_whether_the_proxy_tells_its_port_or_not(told: str, origin: str) -> None:
    proxies = IdentitySettings.model_validate({**IDENTITY, "trusted": ["10.0.0.1"]})
    headers = [(b"x-forwarded-for", told.encode())]
    assert origin_of(Request({"type": "http", "client": ("10.0.0.1", 4000), "headers": headers}), proxies) == origin


def test_a_proxy_is_authentication_enough_for_other_addresses(sqlite: str, tmp_path: Path) -> None:
    world = World.of(sqlite, tmp_path, MONITORS, identity=IDENTITY, listen="0.0.0.0:0")
    with world.served() as server:
        assert httpx.get(f"http://127.0.0.1:{server.address[1]}/label").status_code == 303


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"header": "Cookie"}, "name of a header that the proxy sets"),
        ({"header": "a b"}, "name of a header that the proxy sets"),
        ({"trusted": []}, "at least 1"),
        ({"trusted": ["0.0.0.0/0"]}, "would trust every machine"),
        ({"trusted": ["::/0"]}, "would trust every machine"),
        ({"trusted": ["proxy.example.com"]}, "address or network"),
        ({"roles": {"ops": "king"}}, "annotator"),
        ({"roles": {"ops": {"role": "viewer", "monitors": ["d"]}}}, "there is no such monitor"),
    ],
)
def test_what_cannot_be_is_told(sqlite: str, tmp_path: Path, keys: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        proxied(sqlite, tmp_path, **keys)
