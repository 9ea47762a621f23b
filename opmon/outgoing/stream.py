"""A connection that lives no longer than it may, however slowly the other side sends."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore


class TimedStream(httpcore.NetworkStream):
    """A socket on which every step has only what is left of the whole time, however slowly the bytes come."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.connection = connection
        self.deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.connection.settimeout(left(self.deadline, httpcore.ReadTimeout))
        try:
            return self.connection.recv(max_bytes)
        except TimeoutError as exc:
            raise httpcore.ReadTimeout(str(exc)) from exc
        except OSError as exc:
            raise httpcore.ReadError(str(exc)) from exc

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.connection.settimeout(left(self.deadline, httpcore.WriteTimeout))
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
        self.connection.settimeout(left(self.deadline, httpcore.ConnectTimeout))
        try:
            wrapped = ssl_context.wrap_socket(self.connection, server_hostname=server_hostname)
        except TimeoutError as exc:
            self.close()
            raise httpcore.ConnectTimeout(str(exc)) from exc
        except OSError as exc:
            self.close()
            raise httpcore.ConnectError(str(exc)) from exc
        return TimedStream(wrapped, self.deadline)

    def get_extra_info(self, info: str) -> Any:
        return self.connection if info == "socket" else None


class TimedBackend(httpcore.NetworkBackend):
    """Connections that are over at ``deadline`` (monotonic seconds)."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as exc:
            raise httpcore.ConnectError(str(exc)) from exc
        return connected(list(dict.fromkeys(str(each[4][0]) for each in found)), port, self.deadline)


def connected(addresses: Sequence[str], port: int, deadline: float) -> TimedStream:
    """A connection to the first address that takes one. Each has its share of what is left of the time: of several, one
    that never answers, as of a network that leads nowhere, would take it from those behind it."""
    failure: OSError | None = None
    for place, address in enumerate(addresses):
        share = left(deadline, httpcore.ConnectTimeout) / (len(addresses) - place)
        try:
            return TimedStream(socket.create_connection((address, port), share), deadline)
        except OSError as exc:
            failure = exc
    if isinstance(failure, TimeoutError):
        raise httpcore.ConnectTimeout(str(failure)) from failure
    raise httpcore.ConnectError(str(failure)) from failure


def left(deadline: float, error: type[Exception]) -> float:
    """The seconds until ``deadline`` (monotonic); ``error`` where there are none."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise error("the time is up")
    return seconds
