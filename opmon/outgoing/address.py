"""Where a request goes: its address taken apart, without telling what could be secret in it; and how long to wait."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, quote, unquote, urlsplit

from opmon.errors import InputError

_UNQUOTED = "/%:@!$&'()*+,;=~-._"
_LONGEST_WAIT = 7 * 86400.0


@dataclass(frozen=True)
class Target:
    """The parts of a webhook's address. Its path and query can be secret: only ``shown`` may be told."""

    scheme: str
    host: str
    port: int | None
    path: str
    authorization: str | None

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        return f"{self.scheme}://{self.netloc}"


def target(url: str) -> Target:
    """The address taken apart, or an error that does not hold it.

    >>> target("https://hooks.example.com/opmon?key=1").shown
    'https://hooks.example.com'
    """
    problem = InputError("url must be an address such as https://example.com/hooks/opmon, without spaces")
    if not isinstance(url, str) or re.search(r"[\x00-\x20\x7f\\]", url):
        raise problem
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if ":" in host else host.encode("idna").decode()
    except (ValueError, UnicodeError):
        raise problem from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise problem
    path = quote(parts.path or "/", safe=_UNQUOTED)
    query = f"?{quote(parts.query, safe=_UNQUOTED + '?')}" if parts.query else ""
    return Target(parts.scheme, host, port, path + query, _basic(parts))


def _basic(parts: SplitResult) -> str | None:
    """The header of HTTP's basic authorization for ``user:password@`` in the address."""
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a ``Retry-After`` header asks for, given as a number or a date; None if it is neither.

    >>> retry_after("120")
    120.0
    >>> retry_after("Wed, 21 Oct 2026 07:28:30 GMT", datetime(2026, 10, 21, 7, 28, tzinfo=UTC))
    30.0
    """
    if value is None:
        return None
    value = value.strip()
    if re.fullmatch(r"\d{1,12}", value, re.ASCII):
        return min(float(value), _LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max((moment - (now or datetime.now(UTC))).total_seconds(), 0.0), _LONGEST_WAIT)
