"""What may be shown of an address, or of a text that may hold one: never what somebody could log in with.

It errs on the side of hiding: an address whose password breaks its own syntax is cut at the last ``@``, and what stands
where a port should be may be the password of an address without a host.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

HIDDEN = "***"
_SECRET_NAME = re.compile(
    r"secret|password|passwd|passphrase|token|credential|authorization|headers|signature|api_?key|access_?key|^key$|^pwd$|^sig$",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = re.compile(r"://([^:/@\s]*):(\S*)@")
_WHOLE_USER_AND_PASSWORD = re.compile(r"://([^:/@\s]*):(.*)@", re.DOTALL)
_IS_URL = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)
_TOKEN_AS_USER = re.compile(r"(https?://)[^/@:\s]+@", re.IGNORECASE)
_QUERY = re.compile(r"([?&;])([^=&;#\s]+)=([^&;#\s]*)")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]*@")
_ASSIGNED = re.compile(r"((?:password|passwd|pwd|token|secret)\s*=\s*)[^&\s'\"]+", re.IGNORECASE)
_ADDRESS = re.compile(r"([a-z][a-z0-9+.\-]*:/*)?(.*)", re.IGNORECASE | re.DOTALL)
_NO_PORT = re.compile(r"\A(\[[^\]]*\]|[^/?#:\[]*):(?!\d*(?:[/?#]|\Z)).*", re.DOTALL)


def is_secret_name(name: str) -> bool:
    """Whether a key of this name holds something that must not be shown."""
    return bool(_SECRET_NAME.search(unquote(name)))


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
    return _ASSIGNED.sub(rf"\1{HIDDEN}", _QUERY.sub(_hide_query_value, shown))


def shown_address(text: str) -> str:
    """What was given as an address, right or wrong, with all hidden that could be a secret in it.

    >>> shown_address("postgresql:/opmon:s3cret@db/opmon"), shown_address("opmon:s3cret@db/opmon")
    ('postgresql:/***@db/opmon', 'opmon:***@db/opmon')
    >>> shown_address("postgresql://opmon:s3cret/opmon"), shown_address("postgresql://opmon:s3cret@db:5432/opmon")
    ('postgresql://opmon:***', 'postgresql://opmon:***@db:5432/opmon')
    """
    match = _ADDRESS.fullmatch(text)
    scheme, rest = (match[1] or "", match[2]) if match else ("", text)
    if scheme.startswith(("sqlite", "file")):
        return without_password(text)
    userinfo, at, host = rest.rpartition("@")
    user, colon, _ = userinfo.partition(":")
    if not scheme.endswith("://") or scheme.startswith("http"):
        userinfo = HIDDEN  # it may be a token, or anything
    elif colon:
        userinfo = f"{user}:{HIDDEN}"
    host = _NO_PORT.sub(rf"\1:{HIDDEN}", host)
    shown = f"{scheme}{userinfo if at else ''}{at}{host}"
    return without_password(shown)


def redacted(text: str) -> str:
    """A text of somebody else's, such as an error, without user names and passwords in addresses.

    >>> redacted("GET http://ann:pw@mlflow/api failed: password=pw")
    'GET http://***@mlflow/api failed: password=***'
    """
    return without_password(_CREDENTIALS.sub(f"{HIDDEN}@", text))


def _hide_query_value(match: re.Match[str]) -> str:
    mark, name, value = match.groups()
    return f"{mark}{name}={HIDDEN if is_secret_name(name) else value}"
