from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from opmon.abc import Action
from opmon.errors import DeliveryError, InputError
from opmon.outgoing.address import retry_after
from opmon.plugins import make
from opmon.triggers._webhook import signature
from opmon.triggers.webhook import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LOOPBACK = ("127.0.0.1",)

SOON = 8.0
"""Long after the timeout of a call, and before any of the receivers that waste time is done, on a busy machine too."""


def webhook(receiver, **more) -> Webhook:
    return Webhook(more.pop("url", receiver.url), **{"allow": LOOPBACK, "timeout": 5.0, **more})


def refused(hook: Webhook, event) -> DeliveryError:
    with pytest.raises(DeliveryError) as raised:
        hook.act(event)
    return raised.value


def status(line: str, *headers: str, body: str = "") -> bytes:
    lines = [f"HTTP/1.1 {line}", f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def test_is_an_action_behind_the_entry_point() -> None:
    assert isinstance(make("action", "webhook", {"url": "https://example.com"}), Action)


# what is sent


def test_the_event_arrives_as_standard_webhooks_say(receiver, event) -> None:
    webhook(receiver, secret=SECRET).act(event)
    (request,) = receiver.requests
    assert request.line == "POST /hooks/opmon HTTP/1.1"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == event["id"]
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 60
    assert request.json["type"] == "opmon.alarm"
    assert request.json["timestamp"] == event["at"]
    assert request.json["data"] == {key: value for key, value in event.items() if key not in ("type", "at")}


def test_the_receiver_can_verify_the_signature(receiver, event) -> None:
    webhook(receiver, secret=SECRET).act(event)
    (request,) = receiver.requests
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = f"{event['id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"


def test_the_published_test_vector() -> None:
    made = signature(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_without_a_secret_nothing_is_signed(receiver, event) -> None:
    webhook(receiver).act(event)
    assert "webhook-signature" not in receiver.requests[0].headers


def test_a_repeated_delivery_carries_the_same_id_and_body(receiver, event) -> None:
    receiver.answer = status("500 Oops")
    hook = webhook(receiver, secret=SECRET)
    refused(hook, event)
    receiver.answer = status("204 No Content")
    hook.act(event)
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


def test_headers_of_the_configuration_are_sent(receiver, event) -> None:
    webhook(receiver, headers={"X-Team": "models", "User-Agent": "ours"}).act(event)
    assert receiver.requests[0].headers["x-team"] == "models"
    assert receiver.requests[0].headers["user-agent"] == "ours"


def test_user_and_password_become_basic_authorization(receiver, event) -> None:
    webhook(receiver, url=f"http://me:p%40ss@127.0.0.1:{receiver.port}/x?a=b%20c&d=é").act(event)
    assert receiver.requests[0].headers["authorization"] == "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert receiver.requests[0].line == "POST /x?a=b%20c&d=%C3%A9 HTTP/1.1"


def test_numbers_that_json_has_no_word_for_are_null(receiver, event) -> None:
    event["estimate"]["value"] = float("nan")
    webhook(receiver).act(event)
    assert receiver.requests[0].json["data"]["estimate"]["value"] is None


def test_proxies_of_the_environment_are_not_used(receiver, event, monkeypatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    webhook(receiver).act(event)
    assert len(receiver.requests) == 1


# what is answered


@pytest.mark.parametrize("answer", ["200 OK", "201 Created", "202 Accepted", "204 No Content", "299 Odd"])
def test_any_2xx_is_delivered(receiver, event, answer: str) -> None:
    receiver.answer = status(answer)
    webhook(receiver).act(event)


@pytest.mark.parametrize("code", [400, 410, 413, 415, 422])
def test_a_refusal_is_final(receiver, event, code: int) -> None:
    receiver.answer = status(f"{code} No", body="the answer's own words")
    error = refused(webhook(receiver), event)
    assert error.final
    assert f"refused the event with {code}" in str(error)
    assert "own words" not in str(error)


@pytest.mark.parametrize(
    ("code", "words"),
    [(401, "Renew the token"), (403, "does not let opmon in"), (404, "Is the receiver running"), (405, "path of url")],
)
def test_a_refusal_that_somebody_can_mend_is_worth_another_try(receiver, event, code: int, words: str) -> None:
    receiver.answer = status(f"{code} No", body="the answer's own words")
    error = refused(webhook(receiver), event)
    assert not error.final
    assert f"refused the event with {code}: " in str(error)
    assert words in str(error)
    assert "own words" not in str(error)


@pytest.mark.parametrize("code", [402, 407, 408, 409, 421, 423, 425, 429, 451, 500, 502, 503, 504, 599])
def test_trouble_is_worth_another_try(receiver, event, code: int) -> None:
    receiver.answer = status(f"{code} Later")
    error = refused(webhook(receiver), event)
    assert not error.final
    assert error.retry_after is None
    assert str(code) in str(error)


@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_in_seconds(receiver, event, code: int) -> None:
    receiver.answer = status(f"{code} Later", "Retry-After: 120")
    assert refused(webhook(receiver), event).retry_after == 120


def test_retry_after_as_a_date(receiver, event) -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    receiver.answer = status("503 Later", f"Retry-After: {moment}")
    wait = refused(webhook(receiver), event).retry_after
    assert wait is not None
    assert 80 < wait <= 90


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("", None), ("soon", None), ("-5", None), ("1e3", None), ("0", 0.0), ("99999999", 7 * 86400.0),
     ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("Wed, 99 Oct 2026 07:28:00 GMT", None)],
)  # fmt: skip
def test_retry_after_of_every_kind(header: str | None, seconds: float | None) -> None:
    assert retry_after(header) == seconds


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1:{port}/again", "http://169.254.169.254/latest/meta-data/", "https://example.com/", "/again"],
)
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(receiver, event, location: str, code: int) -> None:
    receiver.answer = status(f"{code} Over there", f"Location: {location.format(port=receiver.port)}")
    error = refused(webhook(receiver), event)
    assert error.final
    assert "redirect" in str(error)
    assert receiver.connections == 1


# what goes wrong


def test_nobody_listens(event) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = refused(Webhook(f"http://127.0.0.1:{port}/", allow=LOOPBACK), event)
    assert not error.final
    assert "could not be reached" in str(error)


def test_a_hanging_receiver_is_left_after_the_timeout(receiver, event) -> None:
    receiver.answer = lambda connection: time.sleep(10)
    began = time.monotonic()
    error = refused(webhook(receiver, timeout=0.5), event)
    assert time.monotonic() - began < SOON
    assert not error.final
    assert "did not answer within 0.5 s" in str(error)


def _drip(connection: socket.socket, content: bytes) -> None:
    for byte in content:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


def test_a_receiver_that_drips_its_headers_is_left_after_the_timeout(receiver, event) -> None:
    receiver.answer = lambda connection: _drip(connection, b"HTTP/1.1 200 OK\r\nX-Filler: " + b"x" * 200)
    began = time.monotonic()
    assert not refused(webhook(receiver, timeout=0.8), event).final
    assert time.monotonic() - began < SOON


def test_a_receiver_that_drips_its_body_has_taken_the_event(receiver, event) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"
    receiver.answer = lambda connection: (connection.sendall(head), _drip(connection, b"x" * 200))[1]
    began = time.monotonic()
    webhook(receiver, timeout=0.8).act(event)
    assert time.monotonic() - began < SOON


def test_an_endless_body_is_not_read(receiver, event) -> None:
    sent = 0

    def pour(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)
            sent += 65536

    receiver.answer = pour
    webhook(receiver).act(event)
    assert sent < 50_000_000


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Le", b"SSH-2.0-OpenSSH\r\n", b"\0" * 99]
)
def test_a_receiver_that_dies_before_it_has_answered(receiver, event, answer: bytes) -> None:
    receiver.answer = answer
    error = refused(webhook(receiver), event)
    assert not error.final
    assert "could not be reached" in str(error)


def test_a_receiver_that_dies_in_its_body_has_taken_the_event(receiver, event) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"
    webhook(receiver).act(event)


def test_endless_headers_are_not_read(receiver, event) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 1000) for n in range(2000))
    assert not refused(webhook(receiver), event).final


def test_endless_informational_answers_end_with_the_timeout(receiver, event) -> None:
    def inform(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            time.sleep(0.05)

    receiver.answer = inform
    began = time.monotonic()
    assert not refused(webhook(receiver, timeout=0.8), event).final
    assert time.monotonic() - began < SOON


# what is never told


@pytest.mark.parametrize("answer", [status("404 No"), status("500 Oops"), b"", status("302 No", "Location: /")])
def test_errors_hold_no_secret_and_no_path(receiver, event, answer: bytes) -> None:
    receiver.answer = answer
    url = f"http://me:hidden-password@127.0.0.1:{receiver.port}/hidden-path?hidden=query"
    error: BaseException | None = refused(
        webhook(receiver, url=url, secret=SECRET, headers={"X": "hidden-header"}), event
    )
    while error is not None:
        assert "hidden" not in str(error)
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__


def test_repr_holds_no_secret() -> None:
    hook = Webhook("https://me:hidden@example.com/hidden", secret=SECRET, headers={"Authorization": "hidden"})
    assert "hidden" not in repr(hook)
    assert SECRET not in repr(hook)


# TLS


def test_tls_with_a_certificate_that_the_system_trusts(tls_receiver, event, monkeypatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls_receiver.certificate))
    hook = Webhook(f"https://localhost:{tls_receiver.port}/x", allow=("localhost",), timeout=60.0)
    hook.act(event)
    assert tls_receiver.requests[0].json["data"]["id"] == event["id"]


def test_tls_with_a_certificate_of_nobody(tls_receiver, event) -> None:
    hook = Webhook(f"https://localhost:{tls_receiver.port}/x", allow=("localhost",), timeout=60.0)
    assert "its certificate is signed by itself" in str(refused(hook, event))
    assert tls_receiver.requests == []


def test_tls_with_a_certificate_of_another_host(tls_receiver, event, monkeypatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls_receiver.certificate))
    hook = Webhook(f"https://127.0.0.1:{tls_receiver.port}/x", allow=LOOPBACK, timeout=60.0)
    assert "its certificate is for another name" in str(refused(hook, event))
    assert tls_receiver.requests == []


def test_tls_handshake_that_hangs_ends_with_the_timeout(event) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hook = Webhook(f"https://127.0.0.1:{silent.getsockname()[1]}/", allow=LOOPBACK, timeout=0.5)
        assert "did not answer within" in str(refused(hook, event))


# what is not accepted


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "ftp://example.com", "https://", "https:///x", "https://a b", "https://a\n.com", "https://a:99999",
     "https://a:0", "https://a\\@b", "file:///etc/passwd", "https://[::1", "https://" + "a" * 64 + ".com", 7, None],
)  # fmt: skip
def test_addresses_that_are_none(url) -> None:
    with pytest.raises(InputError, match="url must be an address such as https"):
        Webhook(url)


def test_plain_http_is_for_hosts_that_are_allowed() -> None:
    with pytest.raises(InputError, match="url must begin with https"):
        Webhook("http://example.com")
    assert Webhook("http://Example.com", allow=("example.com",))


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_" + "é" * 40]
)
def test_secrets_that_are_none(secret: str) -> None:
    with pytest.raises(InputError, match=r"secret must be whsec_.*make one") as raised:
        Webhook("https://example.com", secret=secret)
    assert secret in ("", "whsec_") or secret not in str(raised.value)


@pytest.mark.parametrize(
    "headers",
    [
        {"a b": "x"},
        {"A": "x\r\nB: y"},
        {"A": "é"},
        {"Host": "x"},
        {"content-length": "1"},
        {"Webhook-Id": "x"},
        {"A": 5},
    ],
)
def test_headers_that_are_none(headers) -> None:
    with pytest.raises(InputError, match="headers"):
        Webhook("https://example.com", headers=headers)


def test_a_whole_header_in_place_of_its_name_is_not_told() -> None:
    with pytest.raises(InputError, match="a name that is no header") as raised:
        Webhook("https://example.com", headers={"Authorization: Bearer hidden-token": "x"})
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("timeout", [0, -1, 301, float("inf"), float("nan"), True])
def test_timeouts_that_are_none(timeout) -> None:
    with pytest.raises(InputError, match="timeout must be"):
        Webhook("https://example.com", timeout=timeout)
