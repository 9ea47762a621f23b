"""Where people meet opmon: the pages, and the API that programs use."""

from __future__ import annotations

import re
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from opmon.config.fields import Count, Duration
from opmon.config.identity import IdentitySettings, RolesOfGroups
from opmon.config.listening import Listening, is_loopback
from opmon.config.oidc import OidcSettings, is_safe
from opmon.config.part import at_key

_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#@]*)?\Z")


class WebSettings(Listening):
    """The pages and the API that ``opmon serve`` brings."""

    enabled: bool = True
    listen: str = "127.0.0.1:8080"
    url: str | None = None
    """How people reach the pages, where that is another address, such as that of a proxy: for links."""
    max_body: Count = 1 << 20
    """Bytes of one request."""
    session: Duration = Field(default="14d")  # type: ignore[assignment]
    """How long a browser stays signed in."""
    rate: Count = 200
    """Requests a second that one person may send; ten times as many at once."""
    identity: IdentitySettings | None = None
    """Headers in which a proxy says who asks; None: people sign in with tokens."""
    oidc: OidcSettings | None = None
    """The provider of OpenID Connect at which browsers sign in; None: they sign in with tokens."""
    keep_audit: Duration = Field(default="365d")  # type: ignore[assignment]
    """How long it is known who did what."""

    @field_validator("url")
    @classmethod
    def _a_link(cls, value: str | None) -> str | None:
        if value is not None and not _URL.match(value):
            raise ValueError("must be where a browser finds the pages, such as https://opmon.example.com")
        return value

    @model_validator(mode="after")
    def _can_come_back(self) -> Self:
        """Browsers are sent to the provider and come back; what they bring must be read by nobody on the way."""
        if self.oidc is None:
            return self
        if self.identity is not None:
            raise at_key("oidc", "and identity exclude each other: people are known by a proxy or by a provider")
        if not is_safe(self.address) or (self.url is None and not self.is_loopback):
            raise at_key(
                "url",
                "must be the https:// address of these pages, to which the provider (web: oidc) sends browsers back, "
                "such as https://opmon.example.com",
            )
        return self

    @property
    def known_elsewhere(self) -> RolesOfGroups | None:
        """What people may do by their groups, whom a proxy or a provider knows; None: opmon knows them itself."""
        return self.oidc or self.identity

    @property
    def address(self) -> str:
        """Where a browser finds the pages, without a slash at the end."""
        if self.url is not None:
            return self.url.rstrip("/")
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not listened on
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def leads_elsewhere(self) -> bool:
        """Whether people of other machines find the pages by their address, such as through a proxy on this one."""
        return self.url is not None and not is_loopback(urlsplit(self.url).hostname or "")

    @property
    def is_explicit(self) -> bool:
        """Whether the address was written by somebody, who then expects it to be taken."""
        return "listen" in self.model_fields_set
