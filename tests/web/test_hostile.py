"""Whatever is sent, the answer says what is wrong with it; nothing is a fault of the server, which lives on."""

from __future__ import annotations

import base64
import io
import json
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from opmon.web import app
from opmon.web.guards import Guarded
from opmon.web.server import Server
from tests.made_once import new_opmon_database
from tests.patience import LONGEST
from tests.web.world import World, encoded, monitor, picture

Clients = Callable[..., httpx.Client]
API = "/api/v1"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One for all of these tests, which change nothing in it."""
    folder = tmp_path_factory.mktemp("world")
    made = World.of(new_opmon_database(folder / "opmon.db"), folder)
    made.ask("digits", [{"picture": encoded(picture(3))}])
    return made


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Server]:
    with world.served() as server:
        yield server


@pytest.fixture(autouse=True)
def no_fault_is_logged(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"[" * 50_000, "body"),
        (b'{"answers": []}', "answers"),
        (b'{"answers": [{"key": "t1-0"}]}', "either truth or skip"),
        (b'{"answers": [{"key": "t1-0", "truth": "a", "skip": true}]}', "either truth or skip"),
        (b'{"answers": [{"key": "t1-0", "truth": "a", "seconds": NaN}]}', "seconds"),
        (b'{"answers": [{"key": "t1-0", "truth": "a", "seconds": -1}]}', "seconds"),
        (b'{"answers": [{"key": "t1-0", "truth": "a", "at": "yesterday"}]}', "at"),
        (b'{"answers": [{"key": "t1-0", "truth": "a", "at": "2026-01-01T00:00:00"}]}', "at"),
        (b'{"answers": [{"key": "t1-0", "truth": "a\\u0000"}]}', "truth"),
        (b'{"answers": [{"key": "t1-0", "truth": "\\ud800"}]}', "truth"),
        (b'{"answers": [{"key": "t1-0", "truth": "a", "judge": 1}]}', "judge"),
        (b'{"answers": [{"key": "", "truth": "a"}]}', "key"),
        (b'{"answers": [' + b'{"key": "t1-0", "truth": "a"},' * 500 + b'{"key": "t1-0", "truth": "a"}]}', "answers"),
        (b'{"answers": 1' + b"0" * 5000 + b"}", "body"),
    ],
)
def test_answers_that_cannot_be_are_told_so(client_of: Clients, world: World, body: bytes, words: str) -> None:
    answer = client_of(name="ann").post(f"{API}/answers", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    assert words in json.dumps(answer.json())
    assert world.said() == []


def test_times_at_the_ends_of_the_calendar(client_of: Clients, world: World) -> None:
    ann = client_of(name="ann")
    (task,) = ann.post(f"{API}/monitors/digits/take", json={"count": 1}).json()["tasks"]
    for at in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-01-01T00:00:00Z"):
        answer = ann.post(f"{API}/answers", json={"answers": [{"key": task["key"], "truth": "1", "at": at}]})
        assert answer.status_code == 422, answer.text


WHATEVER = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.integers(), max_size=3)
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["me", "monitors", "monitors/digits", "answers", "give-back", "said"]) | st.text(max_size=30),
    more=st.text(max_size=30),
    body=st.dictionaries(st.sampled_from(["answers", "keys", "count", "x"]), WHATEVER, max_size=3),
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]),
)
def test_no_path_and_no_body_is_a_fault(server: Server, path: str, more: str, body: object, method: str) -> None:
    target = httpx.URL(server.url).copy_with(raw_path=_quoted(f"{API}/{path}/{more}"))
    with httpx.Client(headers={"opmon-annotator": "ann"}, verify=False) as client:
        answer = client.request(method, target, content=json.dumps(body))
    assert answer.status_code < 500, answer.text


def _quoted(path: str) -> bytes:
    return b"".join(
        b"%%%02x" % each if chr(each) not in "/abcdefghijklmnopqrstuvwxyz1" else bytes([each])
        for each in path.encode("utf-8", "surrogatepass")
    )


@pytest.mark.parametrize("monitor_", ["digits", "%00", "..%2f..", "%ff", "x" * 3000, "'; DROP TABLE labels; --"])
@pytest.mark.parametrize("rest", ["", "/said?last=0", "/said?last=9999999999999999999999", "/classes/0/examples/0"])
def test_monitors_by_any_name(client_of: Clients, monitor_: str, rest: str) -> None:
    assert client_of(name="ann").get(f"{API}/monitors/{monitor_}{rest}").status_code in (200, 404, 422)


@pytest.mark.parametrize("key", ["t1", "t0-000000000000", "t9223372036854775807-000000000000", "t" + "9" * 40 + "-0"])
@pytest.mark.parametrize("field", ["picture", "..%2F..%2Fetc%2Fpasswd", "%00", "a/b/c", "%F0%9F%98%80"])
def test_pictures_by_any_name(client_of: Clients, key: str, field: str) -> None:
    assert client_of(name="ann").get(f"{API}/tasks/{key}/pictures/{field}").status_code == 404


def bomb() -> bytes:
    """A PNG that says that it has 10^10 pixels, and is a kilobyte."""
    kept = io.BytesIO()
    Image.new("L", (8, 8)).save(kept, "PNG")
    header = b"IHDR" + (100_000).to_bytes(4, "big") * 2 + b"\x08\x00\x00\x00\x00"
    real = kept.getvalue()
    return real[:12] + header + zlib.crc32(header).to_bytes(4, "big") + real[33:]


@pytest.mark.parametrize(
    "cell",
    [
        {"base64": base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 500).decode()},
        {"base64": base64.b64encode(bomb() + b"\0" * 300).decode()},
        {
            "base64": base64.b64encode(
                b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>" * 9
            ).decode()
        },
        [[1, 2], [3]],
        [["a", "b"]],
        [[[[[1]]]]],
        [],
        {"a": 1},
        7,
    ],
)
def test_pictures_that_are_none_are_told_so(sqlite: str, tmp_path: Path, cell: Any) -> None:
    world = World.of(sqlite, tmp_path, {"m": monitor(inputs={"image": {"column": "x"}}, classes=["a", "b"])})
    world.ask("m", [{"x": cell}])
    with (
        world.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as ann,
    ):
        (task,) = ann.post(f"{API}/monitors/m/take", json={"count": 1}).json()["tasks"]
        answer = ann.get(task["fields"][0]["url"])
        assert answer.status_code == 422, answer.content[:100]
        assert "cannot be shown" in answer.json()["error"]


def test_a_name_in_the_place_of_a_picture_is_told_as_it_is(sqlite: str, tmp_path: Path) -> None:
    world = World.of(sqlite, tmp_path, {"m": monitor(inputs={"image": {"column": "x"}}, classes=["a", "b"])})
    world.ask("m", [{"x": "<b>gone.png</b>"}])
    with (
        world.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as ann,
    ):
        (task,) = ann.post(f"{API}/monitors/m/take", json={"count": 1}).json()["tasks"]
        (field,) = task["fields"]
        assert (field["url"], field["value"]) == (None, "<b>gone.png</b>")
        assert "<b>gone.png</b>" not in ann.get("/label/m").text


def test_bodies_that_are_too_large_or_too_slow_are_left(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.of(sqlite, tmp_path, max_body=10_000)
    monkeypatch.setattr(app, "Guarded", lambda *given: Guarded(*given, body_seconds=0.2))
    with world.served() as server:
        answer = httpx.post(f"{server.url}{API}/answers", content=b" " * 10_001)
        assert (answer.status_code, "max_body" in answer.json()["error"]) == (413, True)
        with socket.create_connection(server.address, timeout=LONGEST) as slow:
            slow.sendall(b"POST /api/v1/answers HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            assert slow.recv(1000).startswith(b"HTTP/1.1 408")
        with socket.create_connection(server.address, timeout=LONGEST) as endless:
            endless.sendall(b"POST /api/v1/answers HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            endless.sendall((b"2000\r\n" + b" " * 0x2000 + b"\r\n") * 2)
            assert endless.recv(1000).startswith(b"HTTP/1.1 413")
        assert httpx.get(f"{server.url}/healthz").json() == {"status": "ok"}


def test_every_answer_carries_the_headers_that_browsers_heed(client_of: Clients) -> None:
    ann = client_of(name="ann")
    for path in (
        "/sign-in",
        "/label",
        "/nothing",
        f"{API}/me",
        f"{API}/openapi.json",
        "/healthz",
        "/static/x/label.js",
    ):
        headers = ann.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_pages_hold_no_script_and_no_style_of_their_own(client_of: Clients) -> None:
    ann = client_of(name="ann")
    for path in ("/sign-in", "/label", "/label/digits", "/nothing"):
        text = ann.get(path).text
        assert "<html" in text
        assert " style=" not in text
        assert "<style" not in text
        assert (
            " on" not in text.replace(" one", "").replace(" only", "").replace(" on its", "") or "onclick" not in text
        )
        assert all("src=" in each.split(">")[0] for each in text.split("<script")[1:])


def test_the_description_says_what_is_there(client_of: Clients) -> None:
    told = client_of().get(f"{API}/openapi.json").json()
    assert set(told["paths"]) == {
        f"{API}/{path}"
        for path in (
            "me",
            "monitors",
            "monitors/{monitor}",
            "monitors/{monitor}/classes/{place}/examples/{number}",
            "monitors/{monitor}/take",
            "monitors/{monitor}/said",
            "answers",
            "give-back",
            "tasks/{key}/pictures/{field}",
            "status",
            "status/{monitor}",
            "monitors/{monitor}/timeline",
            "monitors/{monitor}/plan",
            "monitors/{monitor}/versions",
            "monitors/{monitor}/rounds",
            "monitors/{monitor}/rounds/{number}",
            "monitors/{monitor}/rounds/{number}/failures",
            "monitors/{monitor}/configuration",
            "monitors/{monitor}/events",
            "monitors/{monitor}/robustness",
            "monitors/{monitor}/robustness/{number}",
            "monitors/{monitor}/robustness/{number}/answer",
            "monitors/{monitor}/robustness/{number}/map",
            "monitors/{monitor}/robustness/{number}/pictures/{name}",
            "events/{event}/acknowledge",
            "events/{event}/replay",
        )
    }
    assert set(told["components"]["securitySchemes"]) == {"token", "session", "name"}
    for path in told["paths"].values():
        for operation in path.values():
            assert operation["description"]
            assert operation["security"]
            assert {"401", "404", "422"} <= set(operation["responses"])
            wrong = operation["responses"]["422"]["content"]["application/json"]["schema"]["$ref"]
            assert wrong.endswith("/Failure")
