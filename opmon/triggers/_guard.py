"""Which addresses a trigger may connect to. Pure: text in, yes or no out."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from opmon.errors import InputError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

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
        given: object = self.allow
        if isinstance(given, str):
            raise InputError(f"allow takes a list of host names, addresses and networks; got the text {given!r}")
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
