"""What may be shown of an address, or of a text that may hold one: never what somebody could log in with.

It errs on the side of hiding: an address whose password breaks its own syntax is cut at the last ``@``, and what stands
where a port should be may be the password of an address without a host.

Forms are without end, so the secrets themselves are known too: those of the configuration and of the environment are
told to :func:`hide` when they are read, and are hidden wherever they stand from then on.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

HIDDEN = "***"
_SECRET_NAME = re.compile(
    r"secret|password|passwd|passphrase|token|credential|authorization|headers|signature|api_?key|access_?key|^key$|^pwd$|^sig$",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = re.compile(r"://([^:/@\s]*):(\S*)@")
_WHOLE_USER_AND_PASSWORD = re.compile(r"://([^:/@\s]*):(.*)@", re.DOTALL)
_IS_URL = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)
_TOKEN_AS_USER = re.compile(r"(https?://)[^/@:\s]+@", re.IGNORECASE)
_IN_PLACE_OF_PORT = re.compile(r"(?<!databricks)(://[^/?#:@\s'\"\[\]]{0,253}:)(?!\d{1,5}(?!\w))[^\s/?#'\"]+")
"""What stands where a port should be may be the password of an address that lost its host."""
_QUERY = re.compile(r"([?&;])([^=&;#\s]+)=([^&;#\s]*)")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]*@")
_NAMES = (
    r"(?:password|passwd|passphrase|pwd|token|secret|credential|(?:api|access|account|private)_?key|signature)"
    r"[\w.-]{0,40}"
)
_ASSIGNED = re.compile(rf"({_NAMES}\s{{0,5}}=\s{{0,5}}['\"]?)[^&\s'\"]+", re.IGNORECASE)
_QUOTED = re.compile(rf"([\"'][\w.-]{{0,40}}{_NAMES}[\"']\s{{0,5}}[:=]\s{{0,5}})(?:\"[^\"]*\"|'[^']*')", re.IGNORECASE)
_NO_SCHEME = re.compile(r"(?<![^\s/'\"(=])([^\s/:@'\"]{0,100}):([^\s/@'\"]+)@(?=[\w\[])")
_BEARER = re.compile(r"(authorization\W{1,5}\w+\s+|\bbearer\s+(?=[\w.~+/=-]{16}))[^\s'\"<>,]+", re.IGNORECASE)
_TOKEN = re.compile(r"\bopmon_[\w-]{40,}")
_SURELY = re.compile(
    r"(password|passwd|passphrase|secret|\btoken|_token|credentials?|authorization|(api|access|secret|private)_?key)\Z"
    r"|\Aheaders\Z",
    re.IGNORECASE,
)
_SHORTEST = 8
_LONGEST = 20_000
"""Characters of a text that are looked at; the rest is left out: no address is so long, and no sentence needs it."""
_OF_ENVIRONMENT = re.compile(
    r"(PASSWORD|PASSWD|SECRET|TOKEN|_KEY|CREDENTIALS?|CONNECTION_STRING|_SAS|_DSN|_URI|_URL)\Z"
)
_KEY = re.compile(r"[A-Za-z0-9+/]{30,}={0,2}")
"""A key in base64."""
_known: dict[str, None] = {}
_known_pattern: re.Pattern[str] | None = None
_lock = threading.Lock()
_NO_NUMBER = re.compile(r"\A([^@:\[]*):(?!\d+\Z)([^@]+)\Z")
_ADDRESS = re.compile(r"([a-z][a-z0-9+.\-]*:/*)?(.*)", re.IGNORECASE | re.DOTALL)
_NO_PORT = re.compile(r"\A(\[[^\]]*\]|[^/?#:\[]*):(?!\d*(?:[/?#]|\Z)).*", re.DOTALL)


def hide(values: Iterable[str]) -> None:
    """Hide these secrets from now on, as they are and as addresses write them.

    Short ones and plain words stay: they would be hidden in every sentence.
    """
    global _known_pattern
    with _lock:
        before = len(_known)
        for value in values:
            if len(value) >= _SHORTEST and not value.isalpha():
                _known.update(dict.fromkeys(_forms(value)))
        if len(_known) > before:
            _known_pattern = re.compile("|".join(re.escape(each) for each in sorted(_known, key=len, reverse=True)))


def _forms(value: str) -> list[str]:
    """How a secret may be written: as it is, in an address, by Python and in JSON, which double its backslashes."""
    return [value, quote(value, safe=""), quote_plus(value), quote(value), repr(value)[1:-1], json.dumps(value)[1:-1]]


def secrets_in(address: str) -> list[str]:
    """The password of an address, or the token in a password's place, and the values of its query that are secret.

    >>> secrets_in("https://ann:p%40ss@mlflow/?sig=abc&x=1"), secrets_in("opmon.db")
    (['p@ss', 'abc'], [])
    """
    if "://" not in address:
        return [match[2] for match in _NO_SCHEME.finditer(address)]
    try:
        parts = urlsplit(address)
        found = [unquote(parts.password or (parts.username if parts.scheme.startswith("http") else "") or "")]
        found += [value for name, value in parse_qsl(parts.query) if is_secret_name(name)]
        found += [unquote(match[2]) for match in _NO_NUMBER.finditer(parts.netloc)]
    except ValueError:
        return [address.partition("://")[2].rpartition("@")[0].partition(":")[2]]
    return [each for each in found if each]


def hide_environment(environment: Mapping[str, str]) -> None:
    """Hide what variables of the environment hold whose names tell a secret, or the address of something."""
    for name, value in environment.items():
        if _OF_ENVIRONMENT.search(name.upper()):
            hide(secrets_in(value) if "://" in value else [] if _is_path(value) else [value])


def _is_path(value: str) -> bool:
    """Whether a value that may be a secret names a file: keys of clouds, too, may begin with a slash."""
    return value.startswith(("/", "~", ".")) and (not _KEY.fullmatch(value) or Path(value).exists())


def holds_a_secret(name: str) -> bool:
    """Whether the value under a name is surely a secret, so that it may be hidden wherever it stands.

    >>> [holds_a_secret(each) for each in ("ingest_token", "aws_secret_access_key", "key", "tokenizer", "max_tokens")]
    [True, True, False, False, False]
    """
    return bool(_SURELY.search(name))


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
    if len(url) > _LONGEST:
        url = f"{url[:_LONGEST]} …"
    whole = _IS_URL.match(url)
    shown = (_WHOLE_USER_AND_PASSWORD if whole else _USER_AND_PASSWORD).sub(rf"://\1:{HIDDEN}@", url)
    shown = _NO_SCHEME.sub(rf"\1:{HIDDEN}@", shown)
    shown = _IN_PLACE_OF_PORT.sub(_hide_port, shown)
    shown = _TOKEN_AS_USER.sub(rf"\1{HIDDEN}@", shown)
    shown = _ASSIGNED.sub(rf"\1{HIDDEN}", _QUERY.sub(_hide_query_value, shown))
    shown = _QUOTED.sub(rf'\1"{HIDDEN}"', _BEARER.sub(rf"\1{HIDDEN}", shown))
    return _without_known(_TOKEN.sub(HIDDEN, shown))


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
    return without_password(_CREDENTIALS.sub(f"{HIDDEN}@", _without_known(text[: _LONGEST + 1])))


def _without_known(text: str) -> str:
    return text if _known_pattern is None else _known_pattern.sub(HIDDEN, text)


def _hide_port(match: re.Match[str]) -> str:
    """With the end of the address, where there is one behind it; what is hidden already stays."""
    return match[0] if f"{HIDDEN}@" in match[0] else f"{match[1]}{HIDDEN}"


def _hide_query_value(match: re.Match[str]) -> str:
    mark, name, value = match.groups()
    return f"{mark}{name}={HIDDEN if is_secret_name(name) else value}"
