"""People as somebody else knows them, and what they may do: by a proxy in front of opmon."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from opmon.config.part import Part

Role: TypeAlias = Literal["annotator", "operator", "viewer"]
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}\Z")
_OWN = frozenset({"authorization", "cookie", "host", "opmon-annotator", "x-csrf-token"})


def _header(value: str) -> str:
    if not _HEADER.match(value) or value.lower() in _OWN:
        raise ValueError("must be the name of a header that the proxy sets, such as X-Forwarded-User")
    return value.lower()


def _network(value: object) -> Network:
    try:
        network = ipaddress.ip_network(str(value))
    except ValueError as exc:
        raise ValueError(f"must be the proxy's address or network, such as 10.1.2.3 or 10.1.0.0/16: {exc}") from None
    if network.prefixlen == 0:
        raise ValueError("would trust every machine to say who people are; say the proxy's address")
    return network


def _group(value: object) -> object:
    return {"role": value} if isinstance(value, str) else value


Header = Annotated[str, AfterValidator(_header)]
TrustedNetwork = Annotated[Network, BeforeValidator(_network), PlainSerializer(str)]


class GroupRole(Part):
    """What people of a group may do, and of which monitors."""

    role: Role
    monitors: tuple[str, ...] | None = None
    """None: all of them."""


class RolesOfGroups(Part):
    """What people may do by the groups that they are in."""

    roles: Mapping[str, Annotated[GroupRole, BeforeValidator(_group)]] = {}
    """By group. Of several the one that may do the most."""
    role: Role | None = None
    """Of those who are in none of these groups; None: they are refused."""


class IdentitySettings(RolesOfGroups):
    """Which headers say who asks, who may send them, and what the people may do."""

    header: Header
    """Holds the name of whoever asks."""
    trusted: tuple[TrustedNetwork, ...] = Field(min_length=1)
    """The proxies: requests from elsewhere are refused that carry the header."""
    groups: Header | None = None
    """Holds the person's groups, with commas between them."""

    def trusts(self, address: str) -> bool:
        """Whether a machine is one of the proxies."""
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        return any(parsed in network for network in self.trusted)
