from __future__ import annotations

import ipaddress
import socket
import time

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.errors import DeliveryError, InputError
from opmon.outgoing.stream import TimedBackend
from opmon.triggers.guard import Guard, GuardedBackend, is_public
from opmon.triggers.webhook import Webhook

FORBIDDEN = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16",
    "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::1",
    "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "5f00::1", "not an address", "",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "93.184.215.14", "172.32.0.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_a_wrapped_address_is_judged_as_the_one_inside(inner: ipaddress.IPv4Address) -> None:
    for wrapped in (f"::ffff:{inner}", str(ipaddress.IPv6Address(int(ipaddress.ip_address("64:ff9b::")) | int(inner)))):
        assert is_public(wrapped) == is_public(str(inner))


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public(address) -> None:
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        assert not is_public(str(address))


# the allow-list


@pytest.mark.parametrize(
    ("allow", "host", "address", "allowed"),
    [
        ((), "a.example", "1.1.1.1", True),
        ((), "a.example", "10.0.0.1", False),
        (("a.example",), "a.example", "10.0.0.1", True),
        (("A.Example.",), "a.example", "10.0.0.1", True),
        (("a.example",), "b.a.example", "10.0.0.1", False),
        (("10.0.0.0/8",), "a.example", "10.9.9.9", True),
        (("10.0.0.0/8",), "a.example", "::ffff:10.9.9.9", True),
        (("10.0.0.0/8",), "a.example", "192.168.0.1", False),
        (("127.0.0.1",), "127.0.0.1", "127.0.0.1", True),
        (("127.0.0.1",), "127.0.0.2", "127.0.0.2", False),
        (("fd00::/8",), "a.example", "fd00::1", True),
        (("[::1]",), "::1", "::1", True),
    ],
)
def test_allow(allow: tuple[str, ...], host: str, address: str, allowed: bool) -> None:
    assert Guard(allow).allows(host, address) is allowed


@pytest.mark.parametrize("entry", ["", "10.0.0.0/33", "10.0.0.1/8", "https://a.example", "a b", 7])
def test_allow_entries_that_are_none(entry) -> None:
    with pytest.raises(InputError, match="allow takes host names"):
        Guard((entry,))


def test_allow_is_a_list() -> None:
    with pytest.raises(InputError, match="allow takes a list"):
        Webhook("https://example.com", allow="localhost")  # type: ignore[arg-type]


# connecting


def backend(*answers: str, allow: tuple[str, ...] = (), seconds: float = 5.0) -> GuardedBackend:
    return GuardedBackend(Guard(allow), time.monotonic() + seconds, lambda host, port: list(answers))


def test_one_forbidden_address_forbids_the_host() -> None:
    with pytest.raises(
        DeliveryError, match=r"a\.example is 10\.0\.0\.1, which is not a public address.*allow"
    ) as raised:
        backend("1.1.1.1", "10.0.0.1").connect_tcp("a.example", 443)
    assert not raised.value.final
    with pytest.raises(DeliveryError, match=r"^10\.0\.0\.1 is not a public address"):
        backend("10.0.0.1").connect_tcp("10.0.0.1", 443)


def test_the_host_is_resolved_once_and_connected_to_where_it_was_checked(receiver) -> None:
    asked = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    guarded = GuardedBackend(Guard(("127.0.0.1",)), time.monotonic() + 5, rebinding)
    with httpcore.ConnectionPool(network_backend=guarded) as pool:
        answer = pool.request("POST", f"http://no-such-host.invalid:{receiver.port}/x", content=b"1")
    assert answer.status == 200
    assert asked == ["no-such-host.invalid"]
    assert receiver.requests[0].headers["host"] == f"no-such-host.invalid:{receiver.port}"


def test_a_name_server_that_changes_its_mind_gains_nothing() -> None:
    asked = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    guarded = GuardedBackend(Guard(), time.monotonic() + 5, rebinding)
    with pytest.raises(DeliveryError, match="not a public address"):
        guarded.connect_tcp("a.example", 80)
    assert asked == ["a.example"]


def test_the_next_address_is_tried_where_one_is_dead(receiver) -> None:
    stream = backend("127.0.0.2", "127.0.0.1", allow=("127.0.0.0/8",)).connect_tcp("a.example", receiver.port)
    assert stream.get_extra_info("socket").getpeername()[0] == "127.0.0.1"
    stream.close()


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that take all the time that they are given, and never answer."""
    silent: list[str] = []
    connect = socket.socket.connect

    def connected(self: socket.socket, address: tuple[str, int]) -> None:
        if address[0] not in silent:
            return connect(self, address)
        time.sleep(self.gettimeout() or 0.0)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket.socket, "connect", connected)
    return silent


def test_an_address_that_never_answers_leaves_the_next_one_time(receiver, dead: list[str]) -> None:
    dead += ["127.0.0.3", "127.0.0.2"]
    guarded = backend(*dead, "127.0.0.1", allow=("127.0.0.0/8",), seconds=3.0)
    with httpcore.ConnectionPool(network_backend=guarded) as pool:
        assert pool.request("POST", f"http://a.example:{receiver.port}/x", content=b"1").status == 200


def test_so_it_is_where_any_address_is_allowed(receiver, dead: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    dead += ["127.0.0.2"]
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, receiver.port)) for each in (*dead, "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with httpcore.ConnectionPool(network_backend=TimedBackend(time.monotonic() + 3.0)) as pool:
        assert pool.request("POST", f"http://a.example:{receiver.port}/x", content=b"1").status == 200


def test_addresses_of_which_none_answers_end_with_the_time(dead: list[str]) -> None:
    dead += ["127.0.0.3", "127.0.0.2"]
    began = time.monotonic()
    with pytest.raises(httpcore.ConnectTimeout):
        backend(*dead, allow=("127.0.0.0/8",), seconds=0.4).connect_tcp("a.example", 80)
    assert time.monotonic() - began < 4.5


def test_a_host_without_address() -> None:
    with pytest.raises(httpcore.ConnectError, match="has no address"):
        backend().connect_tcp("a.example", 80)


def test_a_slow_name_server_is_left_at_the_deadline() -> None:
    guarded = GuardedBackend(Guard(), time.monotonic() + 0.3, lambda host, port: time.sleep(5) or [])
    began = time.monotonic()
    with pytest.raises(httpcore.ConnectTimeout):
        guarded.connect_tcp("a.example", 80)
    assert time.monotonic() - began < 4.5


def test_a_name_that_nobody_knows_is_worth_another_try() -> None:
    with pytest.raises(DeliveryError) as raised:
        Webhook("https://no-such-host.invalid/").act({"id": "1", "type": "opmon.alarm", "at": "now"})
    assert not raised.value.final


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]",
     "[0:0:0:0:0:ffff:7f00:1]", "127.0.0.1.", "LOCALHOST", "１２７.0.0.1"],
)  # fmt: skip
def test_no_spelling_of_loopback_gets_through(receiver, host: str) -> None:
    hook = Webhook(f"https://{host}:{receiver.port}/x", timeout=60.0)
    with pytest.raises(DeliveryError):
        hook.act({"id": "1", "type": "opmon.alarm", "at": "now"})
    assert receiver.connections == 0


def test_the_cloud_metadata_service_is_not_asked() -> None:
    hook = Webhook("https://169.254.169.254/latest/meta-data/", timeout=60.0)
    with pytest.raises(DeliveryError, match="not a public address") as raised:
        hook.act({"id": "1", "type": "opmon.alarm", "at": "now"})
    assert raised.value.final
