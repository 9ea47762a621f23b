"""What may be shown of an address, a secret or a value of the configuration.

Redaction errs on the side of hiding: a URL whose password breaks its own syntax is cut at the last ``@``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

HIDDEN = "***"
_SECRET_NAME = re.compile(
    r"secret|password|passwd|passphrase|token|credential|authorization|headers|signature|api_?key|access_?key|^pwd$|^sig$",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = re.compile(r"://([^:/@\s]*):(\S*)@")
_WHOLE_USER_AND_PASSWORD = re.compile(r"://([^:/@\s]*):(.*)@", re.DOTALL)
_IS_URL = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)
_TOKEN_AS_USER = re.compile(r"(https?://)[^/@:\s]+@", re.IGNORECASE)
_HTTP_PATH = re.compile(r"^(https?://[^/?#\s]+)[/?#].+$", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"([?&;])([^=&;#\s]+)=([^&;#\s]*)")


def without_password(url: str) -> str:
    """The URL (or any text with URLs in it) with passwords and secret query values hidden.

    >>> without_password("postgresql+psycopg://opmon:s3cret@db:5432/opmon?sslmode=require&password=x")
    'postgresql+psycopg://opmon:***@db:5432/opmon?sslmode=require&password=***'
    >>> without_password("https://a-token@mlflow.example.com/")
    'https://***@mlflow.example.com/'
    >>> without_password("sqlite:///opmon.db")
    'sqlite:///opmon.db'
    """
    whole = _IS_URL.match(url)
    shown = (_WHOLE_USER_AND_PASSWORD if whole else _USER_AND_PASSWORD).sub(rf"://\1:{HIDDEN}@", url)
    shown = _TOKEN_AS_USER.sub(rf"\1{HIDDEN}@", shown)
    return _QUERY.sub(_hide_query_value, shown)


def is_secret_name(name: str) -> bool:
    """Whether a key of this name holds something that must not be shown."""
    return bool(_SECRET_NAME.search(name))


def shown(value: Any, name: str = "") -> Any:
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
    return without_password(str(value))


def _hide_query_value(match: re.Match[str]) -> str:
    mark, name, value = match.groups()
    return f"{mark}{name}={HIDDEN if is_secret_name(name) else value}"


class Address(SecretStr):
    """A URL that may hold a password: ``str()`` and ``repr()`` show it without, ``get_secret_value()`` with."""

    def _display(self) -> str:
        return without_password(self._secret_value)
