from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import self_signed

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """A web server on loopback that answers with the bytes it is told to, or does as it is told."""

    listener: socket.socket
    answer: bytes | Callable[[socket.socket], None] = OK
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    tls: ssl.SSLContext | None = None
    certificate: Path | None = None

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/opmon"

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.handle, args=(connection,), daemon=True).start()

    def handle(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError), plain, self.wrapped(plain) as connection:
            self.requests.append(read_request(connection))
            if callable(self.answer):
                self.answer(connection)
            else:
                connection.sendall(self.answer)

    def wrapped(self, plain: socket.socket) -> socket.socket:
        return plain if self.tls is None else self.tls.wrap_socket(plain, server_side=True)


def read_request(connection: socket.socket) -> Request:
    connection.settimeout(20)
    content = b""
    while b"\r\n\r\n" not in content:
        content += connection.recv(65536) or _gone()
    head, _, body = content.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536) or _gone()
    return Request(line, headers, body)


def _gone() -> bytes:
    raise ConnectionError("the other side hung up")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Receiver(listener)
        threading.Thread(target=made.serve, daemon=True).start()
        yield made


@pytest.fixture
def tls_receiver(receiver: Receiver, tmp_path: Path) -> Receiver:
    """The receiver speaking TLS, with a certificate for ``localhost`` that signs itself."""
    receiver.certificate = tmp_path / "certificate.pem"
    receiver.certificate.write_bytes(self_signed("localhost"))
    receiver.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    receiver.tls.load_cert_chain(receiver.certificate)
    return receiver


@pytest.fixture
def event() -> dict[str, Any]:
    return {
        "id": "0b7c1c3a-5a53-5f0e-9d4a-3a1f0a4f1f11",
        "type": "opmon.alarm",
        "monitor": "digits",
        "rule": "accuracy-floor",
        "round": 7,
        "at": "2026-11-18T08:00:00+00:00",
        "message": "accuracy 0.85 is under the line",
        "model": {"name": "digits", "version": "3", "uri": "models:/digits/3"},
        "estimate": {"value": 0.85, "low": 0.8, "high": 0.9, "level": 0.95, "n": 100, "frame_size": 1000,
                     "method": "sups", "response": 1.0},
        "run_uri": "runs:/abc",
        "failures_uri": None,
    }  # fmt: skip
