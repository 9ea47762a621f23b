"""What may be shown of a value of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import SecretStr

from opmon.redaction import HIDDEN, is_secret_name, shown_address, without_password
from opmon.types import Json

_ADDRESSES = frozenset({"database", "tracking_uri", "registry_uri"})
"""Keys that hold one address: more of what could be a password is hidden in it than in any other text."""
_HTTP_PATH = re.compile(r"^(https?://[^/?#\s]+)[/?#].+$", re.IGNORECASE | re.DOTALL)


def shown(value: object, name: str = "") -> Json:
    """The value as it may be shown: what a secret name holds is hidden, at any depth, and so are passwords in
    URLs and, under the name ``url``, the path of a web address, which can be as good as a password."""
    if value is not None and is_secret_name(name):
        return HIDDEN
    if name == "url" and isinstance(value, str):
        value = _HTTP_PATH.sub(rf"\1/{HIDDEN}", value)
    if isinstance(value, Mapping):
        return {str(key): shown(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shown(inner, name) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return shown_address(str(value)) if name in _ADDRESSES else without_password(str(value))


class Address(SecretStr):
    """A URL that may hold a password: ``str()`` and ``repr()`` show it without, ``get_secret_value()`` with."""

    def _display(self) -> str:
        return shown_address(self._secret_value)
