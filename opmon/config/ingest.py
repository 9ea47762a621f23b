"""Where opmon listens for inputs that model servers send to it."""

from __future__ import annotations

import ipaddress
import re
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from opmon.config.fields import Count, Duration
from opmon.config.part import Part, at_key

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.\-]+):(?P<port>[0-9]{1,5})\Z")
_SHORTEST_TOKEN = 16


class IngestSettings(Part):
    """The endpoint for monitors whose source is ``ingest``."""

    listen: str = "127.0.0.1:8787"
    token: SecretStr | None = None
    """What senders must know; without it only this machine may send."""
    max_body: Count = 8 << 20
    """Bytes of one request."""
    every: Duration = Field(default="2m")  # type: ignore[assignment]
    """How long events are gathered before rounds can read them."""
    settle: Duration = Field(default="1m")  # type: ignore[assignment]
    """How long a request waits for its response."""
    keep: Duration = Field(default="7d")  # type: ignore[assignment]
    """How long rows stay that no round needs any more."""

    @field_validator("listen")
    @classmethod
    def _address(cls, value: str) -> str:
        found = _ADDRESS.match(value)
        if found is None or int(found["port"]) > 65535:
            raise ValueError("must be an address and a port, such as 127.0.0.1:8787 or [::1]:8787")
        return value

    @field_validator("token")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < _SHORTEST_TOKEN:
            raise ValueError(f"must have at least {_SHORTEST_TOKEN} characters; make one with: openssl rand -hex 32")
        return value

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if self.token is None and not self._is_loopback:
            raise at_key(
                "listen",
                f"{self.listen} can be reached from other machines: set token: ${{OPMON_INGEST_TOKEN}}, or listen on "
                f"127.0.0.1:{self.port}",
            )
        return self

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])

    @property
    def _is_loopback(self) -> bool:
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
