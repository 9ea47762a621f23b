"""Where a trigger may connect to: the guard against server-side request forgery.

A host is resolved once, every address it has is checked, and the connection is made to the very address that was
checked, so that a second, different answer of the name server cannot lead it elsewhere. Everything that is not a public
unicast address is refused (loopback, private, link-local with the clouds' metadata services, carrier-grade, multicast,
reserved, and IPv4 addresses wrapped in IPv6 ones), unless the host or its network is in the allow-list.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

import httpcore

from opmon.errors import DeliveryError
from opmon.outgoing.stream import connected, left
from opmon.triggers._guard import Guard, is_public

__all__ = ["Guard", "GuardedBackend", "Resolve", "is_public", "system_addresses"]

Resolve = Callable[[str, int], Iterable[str]]


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
        return connected(self.addresses(host, port), port, self.deadline)

    def addresses(self, host: str, port: int) -> list[str]:
        """All addresses of the host, each of them checked; one that is forbidden forbids the host."""
        found = _within(self.left(), lambda: list(dict.fromkeys(self.resolve(host, port))))
        if not found:
            raise httpcore.ConnectError(f"{host} has no address")
        for address in found:
            if not self.guard.allows(host, address):
                raise DeliveryError(
                    f"{host if host == address else f'{host} is {address}, which'} is not a public address: opmon does "
                    "not connect to it; "
                    "if it is meant, add the host or its network to 'allow' of the webhook",
                    final=host == address,  # what a name stands for may be another address tomorrow
                )
        return found

    def left(self) -> float:
        return left(self.deadline, httpcore.ConnectTimeout)


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
