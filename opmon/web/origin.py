"""Where a request comes from: the machine that connected, or, where that is a proxy, the one that the proxy names."""

from __future__ import annotations

import ipaddress
import re

from fastapi import Request

from opmon.config.identity import IdentitySettings

_WITH_PORT = re.compile(r"(?:(?P<v4>[0-9.]+):[0-9]+|\[(?P<v6>[^\]]+)\](?::[0-9]+)?)\Z")


def origin_of(request: Request, proxies: IdentitySettings | None) -> str:
    """The address, as it is noted and as attempts are counted.

    Of what ``X-Forwarded-For`` says only the last that is no proxy counts: what stands before it anybody may claim.
    """
    peer = request.client.host if request.client else ""
    if proxies is None or not proxies.trusts(peer):
        return peer
    told = [_address_in(each) for line in request.headers.getlist("x-forwarded-for") for each in line.split(",")]
    for address in reversed(told):
        if address is None:
            break
        if not proxies.trusts(address):
            return address
    return peer


def _address_in(text: str) -> str | None:
    """The address alone, where some proxies write the port beside it; None: there is none.

    >>> _address_in(" 203.0.113.7:51234"), _address_in("[2001:db8::1]:443"), _address_in("2001:db8::1")
    ('203.0.113.7', '2001:db8::1', '2001:db8::1')
    """
    found = _WITH_PORT.match(text.strip())
    address = text.strip() if found is None else found["v4"] or found["v6"]
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return None
    return address
