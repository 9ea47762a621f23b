"""Requests as an attacker writes them: other people's things, paths that lead elsewhere, bodies that explode."""

from __future__ import annotations

import base64
import gzip
import io
import json
import socket
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from PIL import Image

from opmon.web.access import NEEDS, Need
from tests.patience import LONGEST
from tests.security.attacked import API, HOSTILE, ROLES, SCRIPT, SECRETS, Attacked

TRAVERSALS = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "..%252f..%252fetc%252fpasswd",
    "%2e%2e/%2e%2e/opmon.yaml",
    "....//....//opmon.yaml",
    "..\\..\\opmon.yaml",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "opmon.yaml%00.png",
    "%c0%ae%c0%ae/opmon.yaml",
    "file:///etc/passwd",
    "\u2025/\u2025/opmon.yaml",
    "C:\\opmon.yaml",
    "~/.ssh/id_rsa",
    "' OR 1=1 --",
    "$(id)",
    "x" * 5000,
)
PLACES = (
    "/docs/{}",
    "/static/{}/x",
    "/static/x/{}",
    "/label/{}",
    "/monitors/{}",
    "/monitors/{}/rounds/1",
    "/monitors/digits/rounds/{}",
    f"{API}/monitors/{{}}",
    f"{API}/monitors/{{}}/classes/0/examples/0",
    f"{API}/monitors/hostile/classes/{{}}/examples/0",
    f"{API}/monitors/hostile/classes/0/examples/{{}}",
    f"{API}/tasks/{{}}/pictures/x",
    f"{API}/tasks/t1-000000000000/pictures/{{}}",
    f"{API}/status/{{}}",
    f"{API}/monitors/digits/rounds/{{}}/failures",
    "/{}",
)


def raw(url: str, path: str, head: str = "", body: bytes = b"", method: str = "GET") -> bytes:
    """What is answered to a path as it is, without a client that tidies it up."""
    host, _, port = urlsplit(url).netloc.partition(":")
    with socket.create_connection((host, int(port)), timeout=LONGEST) as line:
        line.sendall(
            f"{method} {path} HTTP/1.1\r\nhost: {host}:{port}\r\n{head}connection: close\r\n\r\n".encode() + body
        )
        answered = b""
        while piece := line.recv(65536):
            answered += piece
        return answered


def test_every_endpoint_keeps_to_its_line_for_nobody_and_for_each_role(service: Attacked) -> None:
    clients = {role: service.client(role) for role in ROLES}
    for (method, path), need in NEEDS.items():
        address = path.replace("{monitor}", "digits").replace("{number}", "1").replace("{place}", "0")
        for name in ("{version}", "{name}", "{key}", "{field:path}", "{event}"):
            address = address.replace(name, "x")
        body = None if method == "GET" else {}
        nobody = service.client().request(method, address, json=body)
        assert need is Need.NOTHING or nobody.status_code in (401, 303), (method, path)
        if need is Need.NOTHING:
            continue
        for role, client in clients.items():
            answer = client.request(method, address, json=body)
            assert answer.status_code < 500, (method, path, role)
            assert (answer.status_code == 403) is not need.lets(role), (method, path, role)


def test_no_method_is_let_in_that_has_no_line(service: Attacked) -> None:
    operator = service.client("operator")
    for path in ("/", "/label", f"{API}/me", f"{API}/answers", "/docs", "/healthz"):
        for method in ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "PROPFIND", "x" * 100):
            assert operator.request(method, path).status_code in (400, 404, 405), (method, path)


def test_somebody_limited_to_a_monitor_gets_nothing_of_others(service: Attacked) -> None:
    limited, free = service.client("limited"), service.client("operator")
    event = free.get(f"{API}/monitors/digits/events").json()["events"][0]["id"]
    task = free.post(f"{API}/monitors/pictures/take", json={"count": 1}).json()["tasks"][0]
    for path in ("timeline", "rounds", "rounds/1", "rounds/1/failures", "versions", "plan", "configuration", "events"):
        assert free.get(f"{API}/monitors/digits/{path}").status_code == 200, path
        assert limited.get(f"{API}/monitors/digits/{path}").status_code == 404, path
    for path in ("", "/rounds", "/rounds/1", "/plan", "/versions"):
        assert limited.get(f"/monitors/digits{path}").status_code == 404, path
    for path in ("acknowledge", "replay"):
        there = limited.post(f"{API}/events/{event}/{path}", json={}).json()["error"]
        absent = limited.post(f"{API}/events/nothing/{path}", json={}).json()["error"]
        assert there.replace(event, "nothing") == absent, "not even whether there is such an event"
    picture = next(each["url"] for each in task["fields"] if each["kind"] == "picture")
    assert free.get(picture).status_code == 200
    assert limited.get(picture).status_code == 404
    told = limited.post(f"{API}/answers", json={"answers": [{"key": task["key"], "truth": "1"}]}).json()
    assert told["recorded"] == 0
    pages = [limited.get(path).text for path in ("/", "/label", f"{API}/status", f"{API}/monitors")]
    assert not any(name in page for page in pages for name in ("/digits", "hostile", "pictures"))


@pytest.mark.parametrize("place", PLACES)
def test_no_path_leads_out_of_where_it_belongs(service: Attacked, place: str) -> None:
    head = f"authorization: Bearer {service.tokens['operator']}\r\n"
    for each in TRAVERSALS:
        for path in (place.format(quote(each, safe="/%.\\~:")), place.format(quote(each, safe=""))):
            answered = raw(service.url, path, head)
            status = int(answered.split()[1])
            assert status in (400, 401, 303, 404, 422), (path, status)
            assert b"root:" not in answered
            assert b"tracking_uri" not in answered


def test_bodies_that_explode_when_unpacked(service: Attacked) -> None:
    """What is 128 MB of blanks when it is unpacked, once and twice packed, under names that are right and wrong."""
    before, operator = service.memory, service.client("operator")
    engine = zlib.compressobj(9, wbits=31)
    bomb = b"".join(engine.compress(b" " * (1 << 20)) for _ in range(128)) + engine.flush()
    ingest = {"authorization": f"Bearer {SECRETS['OPMON_INGEST_TOKEN']}"}
    for content in (bomb, gzip.compress(bomb)):
        for kind in ("gzip", "deflate", "br", "zstd", "gzip, gzip", "gzip, gzip, gzip, gzip"):
            own = {"content-encoding": kind, "content-type": "application/json"}
            sent = httpx.post(f"{service.ingest}/v1/ingest/sent", content=content, headers={**own, **ingest})
            assert sent.status_code in (400, 413, 415, 422), (kind, sent.text)
            answer = operator.post(f"{API}/answers", content=content, headers=own)
            assert answer.status_code in (400, 413, 415, 422), (kind, answer.text)
    assert service.memory - before < 100


ENDLESS = {
    "chunked": ("transfer-encoding: chunked", b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "one chunk": ("transfer-encoding: chunked", b"40000000\r\n" + b" " * 65536),
    "long": (f"content-length: {1 << 30}", b" " * 65536),
    "longer than numbers": (f"content-length: {10**30}", b" " * 65536),
    "said to be short": ("content-length: 2", b"{}" + b" " * 65534),
    "never said": ("connection: close", b" " * 65536),
    "headers": ("x: y\r\nx: " + "y" * 65000, b""),
    "a form": (
        "content-type: multipart/form-data; boundary=x\r\ntransfer-encoding: chunked",
        b"10000\r\n" + b"-" * 65536 + b"\r\n",
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_body_of_a_gigabyte_is_not_read(service: Attacked, name: str) -> None:
    """However long it is said to be: the sender is refused or cut off long before it has sent it all."""
    head, piece = ENDLESS[name]
    before = service.memory
    for url, path, token in (
        (service.url, f"{API}/answers", service.tokens["operator"]),
        (service.url, "/sign-in", "x"),
        (service.ingest, "/v1/ingest/sent", SECRETS["OPMON_INGEST_TOKEN"]),
    ):
        host, _, port = urlsplit(url).netloc.partition(":")
        named = f"POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {token}\r\n"
        sent = 0
        with socket.create_connection((host, int(port)), timeout=LONGEST) as line:
            try:
                line.sendall(f"{named}{head}\r\n\r\n".encode())
                while sent < 1 << 30:
                    line.sendall(piece or b"z: z\r\n")
                    sent += len(piece) or 6
            except OSError:
                pass  # cut off, as it should be
        assert sent < 100_000_000, (name, path)
    assert service.memory - before < 60, name


@pytest.mark.parametrize("path", [f"{API}/answers", "/sign-in", "/", "/nothing"])
def test_bodies_nested_deeply_or_with_endless_numbers(service: Attacked, path: str) -> None:
    operator = service.client("operator")
    for body in (
        b"[" * 400_000,
        b'{"a":' * 100_000,
        b'{"answers":[' + b"[" * 10_000 + b"]" * 10_000 + b"]}",
        b"1" * 900_000,
        b'{"answers": [{"key": ' + b"9" * 500_000 + b"}]}",
        b'"' + b"\\ud800" * 100_000 + b'"',
        b"\xff\xfe" * 1000,
        b"&".join(b"a%d=b" % k for k in range(50_000)),
        b'{"answers": [' + b",".join(b'{"key":"t1-0","truth":"a"}' for _ in range(30_000)) + b"]}",
    ):
        for kind in (
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/x",
        ):
            assert operator.post(path, content=body, headers={"content-type": kind}).status_code < 500


def test_ingest_takes_nothing_without_the_token_and_no_monitor_but_its_own(service: Attacked) -> None:
    token = SECRETS["OPMON_INGEST_TOKEN"]
    good = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=service.ingest) as client:
        assert client.post("/v1/ingest/sent", json={"a": 1}, headers=good).status_code < 500
        for each in TRAVERSALS:
            answer = client.post(f"/v1/ingest/{quote(each, safe='')}", json={}, headers=good)
            assert answer.status_code in (400, 404, 414), each
        for wrong in (
            "",
            "Bearer ",
            f"Bearer {token[:-1]}",
            f"Bearer {token}x",
            f"Token {token}",
            "Basic ====",
            "Bearer \0",
        ):
            sent = raw(
                service.ingest, "/v1/ingest/sent", f"authorization: {wrong}\r\ncontent-length: 2\r\n", b"{}", "POST"
            )
            assert int(sent.split()[1]) in (400, 401, 429), wrong
    assert not list(service.folder.rglob("passwd*"))


def test_whoever_guesses_the_ingest_token_is_slowed_down(service: Attacked) -> None:
    with httpx.Client(base_url=service.ingest) as client:
        told = [client.post("/v1/ingest/sent", json={}, headers={"authorization": f"Bearer {k}"}) for k in range(15)]
        assert told[-1].status_code == 429
        assert int(told[-1].headers["retry-after"]) >= 1
        good = {"authorization": f"Bearer {SECRETS['OPMON_INGEST_TOKEN']}"}
        assert client.post("/v1/ingest/sent", json={"a": 1}, headers=good).status_code < 429, "who knows it is not"


def test_requests_that_smuggle_another(service: Attacked) -> None:
    """Two lengths, or a length and chunks: a proxy may see another end of the body than the server."""
    smuggled = b"0\r\n\r\nGET /label HTTP/1.1\r\nhost: x\r\n\r\n"
    for head in (
        "content-length: 5\r\ncontent-length: 44\r\n",
        "content-length: 44\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding:\tchunked, identity\r\n",
        "content-length: +5\r\n",
        "content-length: -1\r\n",
        "content-length: 0x5\r\n",
    ):
        answered = raw(service.url, f"{API}/answers", head, smuggled, "POST")
        assert answered.count(b"HTTP/1.1 ") <= 1, head


def test_headers_that_cannot_be(service: Attacked) -> None:
    for head in (
        "authorization: Bearer " + "x" * 60_000 + "\r\n",
        "authorization: Bearer \xff\xfe\r\n",
        "authorization: Basic b3Btb246eA==\r\n",
        "authorization: bearer\r\n",
        "cookie: opmon_session=" + "x" * 50_000 + "\r\n",
        "cookie: opmon_session=\xff; opmon_session=\r\n",
        "cookie: " + "; ".join(f"c{k}=1" for k in range(4000)) + "\r\n",
        "opmon-annotator: ann\r\n",
        "x-forwarded-user: operator\r\n",
        "x-forwarded-for: 127.0.0.1\r\nopmon-annotator: ann\r\n",
        "accept-encoding: " + "gzip," * 5000 + "\r\n",
        "x-http-method-override: DELETE\r\n",
        "range: bytes=" + "0-," * 5000 + "\r\n",
    ):
        answered = raw(service.url, f"{API}/me", head)
        assert not answered or int(answered.split()[1]) in (400, 401, 403, 429, 431), head[:60]


def test_other_sites_can_change_nothing(service: Attacked) -> None:
    browser = service.client(follow_redirects=False)
    assert browser.post("/sign-in", data={"token": service.tokens["hostile"]}).status_code == 303
    page = browser.get("/monitors/digits").text
    csrf = page.split('data-csrf="')[1].split('"')[0]
    event = browser.get(f"{API}/monitors/digits/events").json()["events"][0]["id"]
    changes: list[tuple[str, dict[str, Any]]] = [
        (f"{API}/events/{event}/acknowledge", {}),
        (f"{API}/events/{event}/replay", {}),
        (f"{API}/monitors/digits/take", {"count": 1}),
        (f"{API}/answers", {"answers": [{"key": "t1-0", "truth": "1"}]}),
        (f"{API}/give-back", {"keys": ["t1-0"]}),
    ]
    form = f"/monitors/digits/events/{event}"
    tried = {
        path.replace(event, "{event}").replace("digits", "{monitor}") for path in (form, *(one for one, _ in changes))
    }
    stated = {path for method, path in NEEDS if method == "POST" and "sign" not in path}
    assert tried == stated, "what changes something is tried here"
    for data in ({}, {"csrf": "x"}, {"act": "acknowledge"}, {"act": "acknowledge", "csrf": "x"}):
        assert browser.post(form, data=data).status_code == 403, data
    for path, body in changes:
        for head in (
            {},
            {"x-csrf-token": "x"},
            {"x-csrf-token": csrf, "origin": "https://evil.example.com"},
            {"x-csrf-token": csrf, "origin": "null"},
            {"x-csrf-token": csrf, "sec-fetch-site": "same-site"},
            {"origin": service.url},
        ):
            assert browser.post(path, json=body, headers=head).status_code == 403, (path, head)
        plain = {"content-type": "text/plain", "origin": "https://evil.example.com"}
        assert browser.post(path, content=json.dumps(body), headers=plain).status_code == 403, path
    for path in ("/sign-in", "/sign-out", form):
        assert (
            browser.post(path, data={"csrf": csrf}, headers={"origin": "https://evil.example.com"}).status_code == 403
        )
    answer = browser.options(f"{API}/answers", headers={"origin": "https://evil.example.com"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_what_people_and_production_wrote_is_shown_as_text(service: Attacked) -> None:
    """In pages and as JSON that no browser takes for a page; tests/browser looks at it in a browser."""
    operator = service.client("hostile")
    pages = ("", "/rounds", "/rounds/12", "/versions", "/plan")
    for path in ("/", "/label", "/label/hostile", *(f"/monitors/hostile{each}" for each in pages), "/nothing" + SCRIPT):
        answer = operator.get(path)
        assert answer.headers["content-type"].startswith("text/html")
        assert not [text for text in (SCRIPT, "<img src=x", "<svg onload", "1337") if text in answer.text], path
        assert 'href="javascript:' not in answer.text.lower()
        assert "evil.example.com/x.png" not in answer.text.replace("!", "") or "<img" not in answer.text
    for path in ("me", "monitors/hostile", "monitors/hostile/said", "status", "monitors/hostile/events"):
        answer = operator.get(f"{API}/{path}")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
    taken = operator.post(f"{API}/monitors/hostile/take", json={"count": 50}).json()["tasks"]
    values = [field["value"] for task in taken for field in task["fields"]]
    assert set(HOSTILE) <= {each for each in values if isinstance(each, str)}, (
        "as they are: the page writes them as text"
    )


def test_what_is_given_is_echoed_only_as_text(service: Attacked) -> None:
    operator = service.client("operator")
    for path in (
        "/sign-in?next={}",
        "/monitors/digits/plan?half_width={}",
        "/monitors/digits/versions?first={}&second={}",
        "/monitors/digits/rounds?before={}",
        "/docs/{}",
        "/monitors/{}",
    ):
        for text in HOSTILE:
            answer = operator.get(path.replace("{}", quote(text, safe="")))
            assert answer.status_code < 500
            assert not [each for each in (SCRIPT, "<img src=x", "<svg onload", "1337") if each in answer.text], path


def taken_when_noticed(client: httpx.Client, monitor: str) -> list[Any]:
    """The tasks of a monitor that nobody else asks for, once the service has noticed them."""
    end = time.monotonic() + LONGEST
    while True:
        tasks: list[Any] = client.post(f"{API}/monitors/{monitor}/take", json={"count": 50}).json()["tasks"]
        if tasks or time.monotonic() > end:
            return tasks
        time.sleep(0.2)


def pixels() -> list[bytes]:
    """Small files of JPEG, GIF, TIFF and WebP that say that they are pictures of hundreds of millions of pixels."""

    def made(kind: str, size: tuple[int, int] = (16, 16), **more: Any) -> bytes:
        target = io.BytesIO()
        Image.new("1" if kind == "TIFF" else "L", size).save(target, kind, **more)
        return target.getvalue()

    jpeg, gif = made("JPEG"), made("GIF")
    at = jpeg.index(b"\xff\xc0") + 5
    canvas = b"VP8X" + (10).to_bytes(4, "little") + bytes(4) + b"\xff\xff\xff" * 2
    webp = made("WEBP", lossless=True)[12:]
    return [
        jpeg[:at] + b"\xff\xdc" * 2 + jpeg[at + 4 :],
        gif[:6] + b"\xff" * 4 + gif[10:] + bytes(400),
        made("TIFF", (20_000, 20_000), compression="group4"),
        b"RIFF" + (len(canvas) + len(webp) + 4).to_bytes(4, "little") + b"WEBP" + canvas + webp + bytes(400),
    ]


def test_pictures_that_explode_and_pictures_that_are_programs(service: Attacked) -> None:
    """Pixels without end, and formats whose decoders run other programs, as production could have logged them."""
    from tests.web.test_hostile import bomb

    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(x) print " + b" " * 400
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>attacked()</script></svg>" * 8
    gif = b"GIF89a" + b"\xff\xff\xff\xff" + b"\x00" * 400
    tiff = b"II*\x00" + b"\xff" * 500
    cells = [
        *pixels(),
        bomb() + b"\0" * 300,
        postscript,
        svg,
        gif,
        tiff,
        b"BM" + b"\xff" * 400,
        b"\x00\x00\x01\x00" + b"\xff" * 400,
    ]
    service.world.ask("bombs", [{"picture": {"base64": base64.b64encode(cell).decode()}} for cell in cells])
    operator, before, seen = service.client("hostile"), service.memory, 0
    for task in taken_when_noticed(operator, "bombs"):
        for each in task["fields"]:
            if each["kind"] == "picture":
                answer = operator.get(each["url"])
                assert answer.status_code in (200, 422)
                assert answer.headers["content-type"] in (
                    "image/png",
                    "image/jpeg",
                    "image/gif",
                    "image/webp",
                    "application/json",
                )
                seen += answer.status_code == 422
    assert seen == len(cells)
    assert service.memory - before < 200


def test_many_at_once_with_nonsense_keep_nobody_else_waiting(service: Attacked) -> None:
    operator = service.client("operator")
    wrong = service.client(headers={"authorization": "Bearer opmon_" + "x" * 43})
    with ThreadPoolExecutor(20) as pool:
        statuses = set(pool.map(lambda _: wrong.get(f"{API}/me").status_code, range(200)))
        assert operator.get(f"{API}/me").status_code == 200
    assert statuses <= {401, 429}
    assert wrong.get(f"{API}/me").headers["retry-after"]
