"""Where programs that watch opmon ask: Prometheus, and the probes of whatever keeps it running."""

from __future__ import annotations

from pydantic import SecretStr, field_validator

from opmon.config.listening import Listening

_SHORTEST_TOKEN = 16


class MetricsSettings(Listening):
    """``/metrics``, ``/healthz`` and ``/readyz``: with the pages, and at an address of their own."""

    enabled: bool = True
    listen: str = "127.0.0.1:9464"
    """The address of their own: always that of a worker without pages, and of the others where it is written."""
    token: SecretStr | None = None
    """What whoever reads the metrics must know; the probes answer without it."""

    @field_validator("token")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < _SHORTEST_TOKEN:
            raise ValueError(f"must have at least {_SHORTEST_TOKEN} characters; make one with: openssl rand -hex 32")
        return value

    @property
    def is_explicit(self) -> bool:
        """Whether the address was written by somebody, who then expects it to be taken."""
        return "listen" in self.model_fields_set
