"""Where a server inside opmon listens."""

from __future__ import annotations

import ipaddress
import re

from pydantic import field_validator

from opmon.config.part import Part

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.\-]+):(?P<port>[0-9]{1,5})\Z")


class Listening(Part):
    """A group of keys with the address of a server."""

    listen: str

    @field_validator("listen")
    @classmethod
    def _address(cls, value: str) -> str:
        found = _ADDRESS.match(value)
        if found is None or int(found["port"]) > 65535:
            default = cls.model_fields["listen"].default
            port = str(default).rpartition(":")[2]
            raise ValueError(f"must be an address and a port, such as {default} or [::1]:{port}")
        return value

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, and reached from it alone.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("::1"), is_loopback("example.com")
    (True, False, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
