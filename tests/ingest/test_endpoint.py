"""The endpoint as senders see it, on a socket."""

from __future__ import annotations

import base64
import resource
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opmon import listening
from opmon.config import Settings
from opmon.errors import ConfigError, LeaseHeld
from opmon.ingest.endpoint import Endpoint, Standby
from opmon.sources.ingest import Ingest
from tests.patience import LONGEST

Send = Callable[..., tuple[int, dict[str, object]]]
TOKEN = "a-token-of-some-length"


def test_what_is_acknowledged_is_on_the_disk_and_known(endpoint: Endpoint, send: Send, tmp_path: Path) -> None:
    assert send([{"id": "a", "age": 3}, {"id": "b", "age": 4}]) == (200, {"kept": 2, "known": 0})
    assert send({"id": "b", "age": 4}) == (200, {"kept": 0, "known": 1})
    kept = next((tmp_path / ".opmon" / "ingest" / "@journal").glob("*.log")).read_text(encoding="utf-8")
    assert kept.count('"age\\":') == 2


def test_what_was_sent_is_read_by_the_monitor_it_was_sent_to(settings: Callable[..., Settings], ask: Send) -> None:
    made = settings(every="1s", settle="1s")
    source = made.monitors["digits"].source.plugin
    assert isinstance(source, Ingest)
    with Endpoint(made) as endpoint:
        status, _ = ask(endpoint, "POST", "/v1/ingest/digits", b'{"id": "a", "age": 3}', JSON)
        assert status == 200
        read = threading.Event()
        while not source.pending({}):
            assert not read.wait(0.05)
    rows = [row for batch in source.read(source.pending({})) for row in batch.rows.to_pylist()]
    assert [(row["id"], row["age"]) for row in rows] == [("a", 3)]


JSON = {"content-type": "application/json"}


def test_paths_and_methods_that_are_not_there(endpoint: Endpoint, send: Send, ask: Send) -> None:
    assert send({"a": 1}, to="/v1/ingest/nobody")[0] == 404
    status, told = send({"a": 1}, to="/v1/ingest/others")
    assert status == 404
    assert "digits" not in str(told)
    assert send({"a": 1}, to="/v1/ingest/../digits")[0] == 404
    assert send({"a": 1}, to="/")[0] == 404
    assert ask(endpoint, "GET", "/v1/ingest/digits")[0] == 405
    assert ask(endpoint, "GET", "/healthz") == (200, {"status": "ok"})


def test_hostile_bodies_cost_one_answer_each(endpoint: Endpoint, send: Send) -> None:
    assert send(b"[" * 30_000)[0] == 400
    assert send(b'{"a": "\xff"}')[0] == 400
    assert send(b"x" * 100_001)[0] == 413
    assert send({"a": 1}, kind="text/html")[0] == 415
    assert send({"a": float("nan")})[0] == 200


def raw(endpoint: Endpoint, *pieces: bytes) -> bytes:
    """What a sender of these bytes is answered until the connection ends."""
    with socket.create_connection(endpoint.address, timeout=LONGEST) as connection:
        answer = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
            while some := connection.recv(65536):
                answer += some
        except (BrokenPipeError, ConnectionResetError):
            pass
        return answer


HEAD = b"POST /v1/ingest/digits HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


def test_chunks_without_end_are_cut_off(endpoint: Endpoint) -> None:
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    answer = raw(endpoint, HEAD + b"transfer-encoding: chunked\r\n\r\n", *[chunk] * 10)
    assert answer.startswith(b"HTTP/1.1 413") or answer == b""


def test_senders_that_are_slow_on_purpose_are_left(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HEAD_SECONDS", 0.1)
    assert raw(endpoint, HEAD) == b""
    assert raw(endpoint) == b""
    endpoint.app.body_seconds = 0.1
    assert raw(endpoint, HEAD + b"content-length: 50\r\n\r\n{").startswith(b"HTTP/1.1 408")


def test_more_than_there_is_room_for_is_to_be_sent_again(endpoint: Endpoint, send: Send) -> None:
    endpoint.app.most_waiting = 10
    assert send({"id": "a", "age": 3, "b": "longer"})[0] == 429
    answer = raw(endpoint, HEAD + b"content-length: 50\r\n\r\n" + b" " * 50)
    assert b"retry-after: 1" in answer.lower()
    endpoint.app.most_waiting = 1000
    assert send({"id": "a", "age": 3}) == (200, {"kept": 1, "known": 0})


def test_a_disk_that_is_full_acknowledges_nothing(
    endpoint: Endpoint, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("opmon.ingest.journal.os.fsync", full)
        assert send({"id": "a", "age": 3})[0] == 503
    assert send({"id": "a", "age": 3}) == (200, {"kept": 1, "known": 0})


def test_only_who_knows_the_token_may_send(settings: Callable[..., Settings], ask: Send) -> None:
    with Endpoint(settings(token=TOKEN)) as endpoint:

        def status(**headers: str) -> int:
            return ask(endpoint, "POST", "/v1/ingest/digits", b'{"a": 1}', {**JSON, **headers})[0]

        basic = base64.b64encode(f"kserve:{TOKEN}".encode()).decode()
        assert status() == status(authorization="Bearer x") == status(authorization=f"Digest {TOKEN}") == 401
        assert status(authorization="Basic !") == status(authorization="Bearer é") == 401
        assert status(authorization=f"Bearer {TOKEN}") == status(authorization=f"Basic {basic}") == 200


def test_two_endpoints_cannot_share_a_folder_nor_a_port(
    settings: Callable[..., Settings], endpoint: Endpoint, tmp_path: Path
) -> None:
    with pytest.raises(LeaseHeld, match="keeps what is sent"):
        Endpoint(settings())
    taken = settings(listen=f"127.0.0.1:{endpoint.address[1]}").model_copy(update={"state": tmp_path / "other"})
    with pytest.raises(ConfigError, match="cannot listen"):
        Endpoint(taken)


def test_a_service_takes_over_when_the_other_ends(settings: Callable[..., Settings]) -> None:
    first = Endpoint(settings())
    with Standby(settings(), lambda: None, seconds=0.02) as standby:
        assert not standby.is_at_work.wait(0.1)
        first.close()
        assert standby.is_at_work.wait(20)


def test_many_senders_at_once_share_the_disk(endpoint: Endpoint, send: Send) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda number: send({"id": str(number % 100), "age": number}), range(200)))
    assert {status for status, _ in found} == {200}
    assert sum(int(str(told["kept"])) for _, told in found) == 100


def test_a_disk_that_takes_no_more_is_told_in_words(
    endpoint: Endpoint, send: Send, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the sender nor the log is told a number or a path of the system's."""
    assert send({"id": "a", "age": 3})[0] == 200
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        status, told = send({"id": "b", "age": "x" * 5000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (status, told) == (503, {"error": "nothing was kept: opmon cannot write it down; send it again later"})
    (line,) = [record.getMessage() for record in caplog.records if "acknowledged" in record.getMessage()]
    assert "files may not become so large there" in line
    assert "Errno" not in line
    assert send({"id": "b", "age": "x" * 5000})[0] == 200
