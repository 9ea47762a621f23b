"""How often wrong tokens may be tried from one address."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

_MOST = 10
_SECONDS = 60.0
_ADDRESSES = 10_000
_SITE = 64
"""Bits of an IPv6 address that whoever has one can choose no more."""


@dataclass
class Attempts:
    """Counts wrong tokens by address; a token that was right lately is never held up by the wrong ones of others."""

    most: int = _MOST
    seconds: float = _SECONDS
    monotonic: Callable[[], float] = time.monotonic
    _wrong: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict, repr=False)
    """By address: how many, and until when they count."""
    _right: OrderedDict[str, float] = field(default_factory=OrderedDict, repr=False)
    """By hash: until when a token counts as known."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def seconds_to_wait(self, address: str, token_hash: str) -> int:
        """How long this address must wait before it may try this token; 0: not at all."""
        with self._lock:
            now = self.monotonic()
            if self._right.get(token_hash, now) > now:
                return 0
            count, until = self._wrong.get(address, (0, now))
            return max(1, round(until - now)) if count >= self.most and until > now else 0

    def was_wrong(self, address: str) -> None:
        with self._lock:
            now = self.monotonic()
            count, until = self._wrong.pop(address, (0, now + self.seconds))
            self._wrong[address] = (1, now + self.seconds) if until <= now else (count + 1, until)
            while len(self._wrong) > _ADDRESSES:
                self._wrong.popitem(last=False)

    def was_right(self, token_hash: str) -> None:
        with self._lock:
            self._right[token_hash] = self.monotonic() + 60 * self.seconds
            self._right.move_to_end(token_hash)
            while len(self._right) > _ADDRESSES:
                self._right.popitem(last=False)


def counted_as(address: str) -> str:
    """What attempts of an address are counted under: of IPv6 the whole network that one customer is given.

    >>> counted_as("192.0.2.7"), counted_as("2001:db8::1:2"), counted_as("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _SITE), strict=False))
