"""Where a request comes from: the machine that connected, or, where that is a proxy, the one that the proxy names."""

from __future__ import annotations

import ipaddress

from fastapi import Request

from opmon.config.identity import IdentitySettings


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


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
