"""Where opmon listens for inputs that model servers send to it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from opmon.config.fields import Count, Duration
from opmon.config.listening import Listening
from opmon.config.part import at_key

_SHORTEST_TOKEN = 16


class IngestSettings(Listening):
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

    @field_validator("token")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < _SHORTEST_TOKEN:
            raise ValueError(f"must have at least {_SHORTEST_TOKEN} characters; make one with: openssl rand -hex 32")
        return value

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if self.token is None and not self.is_loopback:
            raise at_key(
                "listen",
                f"{self.listen} can be reached from other machines: set token: ${{OPMON_INGEST_TOKEN}}, or listen on "
                f"127.0.0.1:{self.port}",
            )
        return self
