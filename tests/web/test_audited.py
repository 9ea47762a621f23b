"""What people do and what they are refused is noted, with who they are and where they ask from."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from opmon.store import audit
from opmon.store.audit import Act, Entry
from opmon.web import audited
from opmon.web.audited import Audited
from tests.patience import LONGEST
from tests.web.world import World

Clients = Callable[..., httpx.Client]
API = "/api/v1"


@pytest.fixture(autouse=True)
def noted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited, "GATHER_SECONDS", 0.01)


def noted(world: World, count: int = 0) -> list[Entry]:
    """All that was noted, oldest first, once it is so much."""
    end = time.monotonic() + LONGEST
    while True:
        with world.store.read() as connection:
            found = list(reversed(audit.listing(connection)))
        if len(found) >= count or time.monotonic() > end:
            return found
        time.sleep(0.02)


def test_signing_in_and_out_and_changing_an_answer(world: World, client_of: Clients) -> None:
    token, browser = world.invite("ann"), client_of()
    assert browser.post("/sign-in", data={"token": token}).status_code == 303
    csrf = browser.get("/label").text.split('name="csrf" value="')[1].split('"')[0]
    own = {"x-csrf-token": csrf}
    (task,) = browser.post(f"{API}/monitors/digits/take", json={"count": 1}, headers=own).json()["tasks"]
    for truth in ("1", "1", "2"):
        answers = {"answers": [{"key": task["key"], "truth": truth}]}
        assert browser.post(f"{API}/answers", json=answers, headers=own).json()["recorded"] == 1
    assert browser.post("/sign-out", data={"csrf": csrf}).status_code == 303
    told = [(each.act, each.who, each.known_by, each.origin, each.monitor) for each in noted(world, 3)]
    assert told == [
        (Act.SIGNED_IN, "ann", "token", "127.0.0.1", None),
        (Act.ANSWERS_CHANGED, "ann", "session", "127.0.0.1", "digits"),
        (Act.SIGNED_OUT, "ann", "session", "127.0.0.1", None),
    ]


def test_refusals_are_noted_without_what_was_sent(world: World, client_of: Clients) -> None:
    vera = client_of(world.invite("vera", "viewer"))
    assert vera.post(f"{API}/monitors/digits/take?token=s3cret", json={"count": 1}).status_code == 403
    wrong = client_of("opmon_s3cret")
    assert wrong.get(f"{API}/me").status_code == 401
    assert client_of().post("/sign-in", data={"token": "opmon_s3cret"}).status_code == 401
    found = noted(world, 3)
    assert {(each.who, each.about.partition(":")[0]) for each in found} == {
        ("vera", f"POST {API}/monitors/digits/take"),
        ("", f"GET {API}/me"),
        ("", "POST /sign-in"),
    }
    assert "s3cret" not in str(found)
    assert client_of().get(f"{API}/me").status_code == 401
    assert len(noted(world)) == 3, "who merely has not signed in yet does nothing worth noting"


def test_many_refusals_take_little_room(world: World) -> None:
    kept = Audited(world.store, timedelta(days=1), lambda: datetime.now(UTC))
    for k in range(5000):
        kept.refused("", "", "192.0.2.1", f"GET /{k}: no")
    kept.close()
    found = noted(world)
    assert len(found) <= 400
    assert sum(each.times for each in found) == 5000


def test_what_is_old_goes_and_what_people_did_stays_among_refusals(world: World) -> None:
    now = datetime.now(UTC)
    old = Entry(now - timedelta(days=2), Act.SIGNED_IN, "old", "token", "x")
    did = [Entry(now, Act.SIGNED_IN, f"ann {k}", "token", "x") for k in range(5)]
    refused = [Entry(now, Act.REFUSED, "", "", f"x{k}") for k in range(20)]
    with world.store.write() as connection:
        audit.note(connection, old, *did, *refused)
        assert audit.trim(connection, now - timedelta(days=1), most=50) == 1 + 15
        assert [each.who for each in audit.listing(connection) if each.act is Act.SIGNED_IN][-1] == "ann 0"
        assert audit.trim(connection, now - timedelta(days=1), most=3) == 2 + 5
        assert [each.who for each in audit.listing(connection)] == ["ann 4", "ann 3", "ann 2"]


def test_texts_that_would_spoil_a_terminal_or_a_database_are_made_harmless(world: World) -> None:
    about = "a\0b\x1b[31mc\r\nd\u202ee" + "x" * 500
    with world.store.write() as connection:
        audit.note(connection, Entry(datetime.now(UTC), Act.REFUSED, "", "", "x", None, about))
    (found,) = noted(world)
    assert found.about.startswith("a b [31mc  d e")
    assert len(found.about) == 300


def test_who_sends_too_much_is_told_when_to_come_again(world: World) -> None:
    limited = World.of(str(world.store.engine.url), world.settings.folder, rate=2)
    token = limited.invite("ann")
    with limited.served() as server, httpx.Client(base_url=server.url) as client:
        own = {"authorization": f"Bearer {token}"}
        answers = [client.get(f"{API}/me", headers=own) for _ in range(60)]
        statuses = [each.status_code for each in answers]
        assert statuses[:20] == [200] * 20
        assert 429 in statuses
        late = answers[statuses.index(429)]
        assert int(late.headers["retry-after"]) >= 1
        assert "web: rate" in late.json()["error"]
