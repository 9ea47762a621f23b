"""People as a provider of OpenID Connect knows them, at which browsers sign in."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator

from opmon.config.fields import Duration
from opmon.config.identity import RolesOfGroups
from opmon.config.listening import is_loopback

_ISSUER = re.compile(r"https?://[^\s/?#@\\]+(/[^\s?#@\\]*)?\Z")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*\Z")
_CLIENT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,398}[\x21-\x7e])?\Z")


def is_safe(address: str) -> bool:
    """Whether nobody on the way can read or change what goes to an address.

    >>> is_safe("https://login.example.com"), is_safe("http://127.0.0.1:9"), is_safe("http://login.example.com")
    (True, True, False)
    """
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def _issuer(value: str) -> str:
    if not _ISSUER.match(value) or not is_safe(value):
        raise ValueError(
            "must be the https:// address that the provider calls its issuer, such as "
            "https://login.example.com/realms/company; http:// is for providers on this machine"
        )
    if "/.well-known/" in value:
        raise ValueError("must end before /.well-known/: opmon finds the provider's description there itself")
    return value


def _claim(value: str) -> str:
    if not 0 < len(value) <= 200 or not value.isprintable():
        raise ValueError("must be the name of a claim in the provider's tokens, such as groups")
    return value


Claim = Annotated[str, AfterValidator(_claim)]


class OidcSettings(RolesOfGroups):
    """Where browsers sign in, what the provider knows opmon as, and which of its claims say who somebody is."""

    issuer: Annotated[str, AfterValidator(_issuer)]
    """The provider's address, as its own description writes it."""
    client_id: str
    """What the provider calls opmon."""
    client_secret: SecretStr | None = None
    """What opmon proves itself with, as ${NAME} of the environment; None: the provider knows it as a public client."""
    name: Claim = "preferred_username"
    """The claim that holds the person's name."""
    groups: Claim = "groups"
    """The claim that holds the person's groups; a.b is b inside of a."""
    scopes: str = "openid profile email"
    """What is asked of the provider, with blanks between; some want groups or roles to be asked for."""
    session: Duration = Field(default="12h")  # type: ignore[assignment]
    """How long a browser stays signed in: so late a change of somebody's groups is noticed at most."""
    patience: Duration = Field(default="10s")  # type: ignore[assignment]
    """How long the provider may take for an answer, whole."""

    @field_validator("client_id")
    @classmethod
    def _an_id(cls, value: str) -> str:
        if not _CLIENT.match(value):
            raise ValueError("must be the id that the provider gave opmon, such as opmon")
        return value

    @field_validator("client_secret")
    @classmethod
    def _a_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _CLIENT.match(value.get_secret_value()):
            raise ValueError("must be the secret that the provider gave opmon; leave it out for a public client")
        return value

    @field_validator("scopes")
    @classmethod
    def _asks_for_a_token(cls, value: str) -> str:
        if not _SCOPE.match(value) or "openid" not in value.split():
            raise ValueError("must hold openid, such as: openid profile email")
        return value

    @property
    def shown(self) -> str:
        """The provider by its host, for people."""
        return urlsplit(self.issuer).netloc
