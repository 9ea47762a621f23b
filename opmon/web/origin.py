"""Where a request comes from: the machine that connected, or, where that is a proxy, the one that the proxy names."""

from __future__ import annotations

import ipaddress

from fastapi import Request

from opmon.config.identity import IdentitySettings

_SITE = 64
"""Bits of an IPv6 address that whoever has one can choose no more."""


def origin_of(request: Request, proxies: IdentitySettings | None) -> str:
    """The address, as it is noted and as attempts are counted.

    Of what ``X-Forwarded-For`` says only the last that is no proxy counts: what stands before it anybody may claim.
    """
    peer = request.client.host if request.client else ""
    if proxies is None or not proxies.trusts(peer):
        return peer
    told = [each.strip() for line in request.headers.getlist("x-forwarded-for") for each in line.split(",")]
    for address in reversed(told):
        if not _is_address(address):
            break
        if not proxies.trusts(address):
            return address
    return peer


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


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
