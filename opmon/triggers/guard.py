"""Where a trigger may connect to: the guard against server-side request forgery.

A host is resolved once, every address it has is checked, and the connection is made to the very address that was
checked, so that a second, different answer of the name server cannot lead it elsewhere. Everything that is not a public
unicast address is refused (loopback, private, link-local with the clouds' metadata services, carrier-grade, multicast,
reserved, and IPv4 addresses wrapped in IPv6 ones), unless the host or its network is in the allow-list.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httpcore

from opmon.errors import DeliveryError, InputError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Iterable[str]]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16"),  # the last: a cloud's metadata at a public address
        *("::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2002::/16", "5f00::/16", "fec0::/10"),
    )
)
"""Addresses that do not name one public host, though ``ipaddress`` calls some of them global."""


@dataclass(frozen=True)
class Guard:
    """Checks addresses against the rule above; ``allow`` holds host names, addresses and networks (CIDR).

    >>> Guard(allow=("10.1.0.0/16",)).allows("hooks.example.com", "10.1.2.3")
    True
    >>> Guard().allows("hooks.example.com", "10.1.2.3")
    False
    """

    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for entry in self.allow:
            if not isinstance(entry, str) or not entry.strip() or (_network(entry) is None and not _is_name(entry)):
                raise InputError(f"allow takes host names, addresses and networks such as 10.1.0.0/16; got {entry!r}")

    def allows(self, host: str, address: str) -> bool:
        """Whether ``host`` may be connected to at ``address``."""
        return self.named(host) or self._listed(address) or is_public(address)

    def named(self, host: str) -> bool:
        """Whether the host itself is in the allow-list, by its name or as an address."""
        wanted = _plain_host(host)
        return any(_plain_host(entry) == wanted for entry in self.allow) or self._listed(host)

    def _listed(self, address: str) -> bool:
        parsed = _address(address)
        networks = (_network(entry) for entry in self.allow)
        return parsed is not None and any(network is not None and parsed in network for network in networks)


def is_public(address: str) -> bool:
    """Whether this is the address of one host on the public internet.

    >>> [is_public(a) for a in ("93.184.215.14", "127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::7f00:1")]
    [True, False, False, False, False]
    """
    parsed = _address(address)
    if parsed is None or any(parsed in network for network in _NEVER):
        return False
    if parsed in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    return parsed.is_global and not (parsed.is_multicast or parsed.is_reserved or parsed.is_unspecified)


class GuardedBackend(httpcore.NetworkBackend):
    """Opens connections for httpcore: only to checked addresses, and none outlives ``deadline`` (monotonic seconds)."""

    def __init__(self, guard: Guard, deadline: float, resolve: Resolve | None = None) -> None:
        self.guard = guard
        self.deadline = deadline
        self.resolve = resolve or system_addresses

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: OSError | None = None
        for address in self.addresses(host, port):
            try:
                return GuardedStream(socket.create_connection((address, port), self.left()), self.deadline)
            except OSError as exc:
                failure = exc
        if isinstance(failure, TimeoutError):
            raise httpcore.ConnectTimeout(str(failure)) from failure
        raise httpcore.ConnectError(str(failure)) from failure

    def addresses(self, host: str, port: int) -> list[str]:
        """All addresses of the host, each of them checked; one that is forbidden forbids the host."""
        found = _within(self.left(), lambda: list(dict.fromkeys(self.resolve(host, port))))
        if not found:
            raise httpcore.ConnectError(f"{host} has no address")
        for address in found:
            if not self.guard.allows(host, address):
                raise DeliveryError(
                    f"{host} is {address}, which is not a public address: opmon does not connect to it; "
                    f"if it is meant, add the host or its network to «allow» of the webhook",
                    final=True,
                )
        return found

    def left(self) -> float:
        return _left(self.deadline, httpcore.ConnectTimeout)


class GuardedStream(httpcore.NetworkStream):
    """A socket on which every step has only what is left of the whole time, however slowly the bytes come."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.connection = connection
        self.deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.connection.settimeout(_left(self.deadline, httpcore.ReadTimeout))
        try:
            return self.connection.recv(max_bytes)
        except TimeoutError as exc:
            raise httpcore.ReadTimeout(str(exc)) from exc
        except OSError as exc:
            raise httpcore.ReadError(str(exc)) from exc

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.connection.settimeout(_left(self.deadline, httpcore.WriteTimeout))
        try:
            self.connection.sendall(buffer)
        except TimeoutError as exc:
            raise httpcore.WriteTimeout(str(exc)) from exc
        except OSError as exc:
            raise httpcore.WriteError(str(exc)) from exc

    def close(self) -> None:
        self.connection.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self.connection.settimeout(_left(self.deadline, httpcore.ConnectTimeout))
        try:
            wrapped = ssl_context.wrap_socket(self.connection, server_hostname=server_hostname)
        except TimeoutError as exc:
            self.close()
            raise httpcore.ConnectTimeout(str(exc)) from exc
        except OSError as exc:
            self.close()
            raise httpcore.ConnectError(str(exc)) from exc
        return GuardedStream(wrapped, self.deadline)

    def get_extra_info(self, info: str) -> Any:
        return self.connection if info == "socket" else None


def system_addresses(host: str, port: int) -> list[str]:
    """What the system's resolver answers."""
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as exc:
        raise httpcore.ConnectError(f"{host} cannot be resolved: {exc}") from exc


def _within(seconds: float, work: Callable[[], list[str]]) -> list[str]:
    """The result of ``work``, which has no timeout of its own; left behind in its thread where it takes too long."""
    outcome: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            outcome.put(work())
        except Exception as exc:  # noqa: BLE001 - handed to the thread that waits
            outcome.put(exc)

    threading.Thread(target=run, name="opmon-resolve", daemon=True).start()
    try:
        result = outcome.get(timeout=seconds)
    except queue.Empty:
        raise httpcore.ConnectTimeout("the name server did not answer") from None
    if isinstance(result, Exception):
        raise result
    return result


def _left(deadline: float, error: type[Exception]) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise error("the time is up")
    return left


def _address(text: str) -> Address | None:
    try:
        parsed = ipaddress.ip_address(text.strip("[]").split("%")[0])
    except ValueError:
        return None
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, ipaddress.IPv6Address) else parsed


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text.strip("[]"))
    except ValueError:
        return None


def _plain_host(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _is_name(text: str) -> bool:
    return "/" not in text and ":" not in text and not any(c.isspace() for c in text)
