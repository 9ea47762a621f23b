"""What is told when a sign-in at the provider comes to nothing."""

from __future__ import annotations

from opmon.errors import OpmonError, UnavailableError


class Untrusted(OpmonError):
    """What the provider, or a browser in its name, brought is not believed."""


class Unreachable(UnavailableError):
    """The provider does not answer, or answers nonsense: it is its fault or that of the configuration."""
