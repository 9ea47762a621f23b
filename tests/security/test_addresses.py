"""Where opmon is made to connect to: every spelling of this machine, of clouds' metadata, and of what is private."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpcore
import pytest

from opmon.config import Settings
from opmon.errors import ConfigError, DeliveryError, InputError, OpmonError
from opmon.judges._asking import Chat
from opmon.outgoing.breaker import breakers
from opmon.scoring.inputs.encoded import encoded
from opmon.triggers.guard import Guard, GuardedBackend
from opmon.triggers.webhook import Webhook
from tests.web.world import monitor

EVENT = {"id": "1", "type": "opmon.alarm", "at": "now"}
HERE = (
    *("127.0.0.1", "127.1", "127.0.1", "127.127.127.127", "2130706433", "017700000001", "0x7f000001", "0x7f.0.0.1"),
    *("0177.0.0.1", "0177.0.0.01", "127.0.0.1.", "0", "0.0.0.0", "0x0", "00", "localhost", "localhost.", "LOCALHOST"),
    *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::1%25lo]"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[0:0:0:0:0:ffff:7f00:1]", "\uff11\uff12\uff17.0.0.1", "①②⑦.⓪.⓪.①"),
    *("127。0。0。1", "127%2e0%2e0%2e1", "user@127.0.0.1", "example.com@127.0.0.1", "example.com:x@127.0.0.1"),
)
METADATA = (
    *(
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
    ),
    *(
        "[fd00:ec2::254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
    ),
)
PRIVATE = ("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "0xc0a80001", "[fc00::1]", "[fe80::1]", "224.0.0.1",
           "255.255.255.255", "198.18.0.1", "240.0.0.1")  # fmt: skip


@dataclass
class Listening:
    """This machine, at one port; it counts who comes, and sends them on."""

    answer: bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    came: int = 0
    sockets: list[socket.socket] = field(default_factory=list)

    def begin(self) -> int:
        first = socket.create_server(("127.0.0.1", 0))
        port = int(first.getsockname()[1])
        self.sockets = [first, socket.create_server(("::1", port), family=socket.AF_INET6)]
        for each in self.sockets:
            threading.Thread(target=self._serve, args=(each,), daemon=True).start()
        return port

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return
            with line:
                self.came += 1
                line.recv(65536)
                line.sendall(self.answer)


@pytest.fixture
def machine() -> Iterator[tuple[Listening, int]]:
    breakers.clear()
    made = Listening()
    yield made, made.begin()
    for each in made.sockets:
        each.close()
    breakers.clear()


@pytest.mark.parametrize("host", [*HERE, *METADATA, *PRIVATE])
def test_a_webhook_reaches_nothing_that_is_not_public(machine: tuple[Listening, int], host: str) -> None:
    listening, port = machine
    with pytest.raises((DeliveryError, InputError)) as told:
        Webhook(f"https://{host}:{port}/x", timeout=2.0).act(EVENT)
    assert listening.came == 0
    assert "cannot be reached" not in str(told.value), "it is not even tried"


ON = ("http://127.0.0.1:{}/", "http://169.254.169.254/latest/", "//127.0.0.1:{}/", "file:///etc/passwd")


@pytest.mark.parametrize("target", ON)
def test_nobody_is_followed_elsewhere(machine: tuple[Listening, int], target: str) -> None:
    """A host that is allowed sends on to one that is not: webhooks and judges stay where they are."""
    listening, port = machine
    elsewhere = Listening()
    led = target.format(elsewhere.begin())
    listening.answer = f"HTTP/1.1 307 Go\r\nlocation: {led}\r\ncontent-length: 0\r\n\r\n".encode()
    with pytest.raises(DeliveryError, match="a redirect, which is not followed"):
        Webhook(f"http://127.0.0.1:{port}/x", allow=("127.0.0.1",), timeout=60.0).act(EVENT)
    with pytest.raises(OpmonError, match="redirects are not followed"):
        Chat(f"http://127.0.0.1:{port}/v1", "m", None, 60.0, 1, {}).ask([], threading.Event())
    assert (listening.came, elsewhere.came) == (2, 0)
    for each in elsewhere.sockets:
        each.close()


def test_a_name_that_is_answered_otherwise_the_second_time(machine: tuple[Listening, int]) -> None:
    """The name server says a public address when it is checked, and this machine's when it is connected to."""
    listening, port = machine
    answers = iter([["192.0.2.1"], ["93.184.215.14", "127.0.0.1"], ["127.0.0.1"]])
    for _ in range(3):
        guarded = GuardedBackend(Guard(), time.monotonic() + 0.3, lambda host, port: next(answers))
        with pytest.raises((DeliveryError, httpcore.ConnectError, httpcore.ConnectTimeout)):
            guarded.connect_tcp("rebound.example.com", port)
    assert listening.came == 0


ADDRESSES = ("http://127.0.0.1/p", "https://169.254.169.254/latest", "ftp://127.0.0.1/p", "gopher://127.0.0.1/",
             "dict://127.0.0.1:11211/", "file://127.0.0.1/etc", "jar:http://127.0.0.1!/", "//127.0.0.1/p")  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_pictures_are_not_fetched_from_addresses(tmp_path: Path, address: str) -> None:
    """They come from the folder or object store that the configuration names, never from where a row says."""
    for folder in (tmp_path, None):
        told = encoded(address, "photo", folder)
        assert isinstance(told, str)
        assert told.startswith("column 'photo' ")
    if address.startswith(("http", "ftp", "gopher", "dict")):
        with pytest.raises(ConfigError):
            Settings.from_mapping({"monitors": {"m": monitor(inputs={"image": {"column": "a", "folder": address}})}})
