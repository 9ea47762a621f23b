"""What the keys ``since`` and ``settle`` say, the same for every source that has them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from opmon.durations import duration
from opmon.errors import InputError

Since = str | date | datetime | None
NOW = "now"
_ZERO = re.compile(r"0+(\.0+)?\s*[smhdw]?\Z")


def moment_of(since: str | None, now: datetime) -> datetime | None:
    """The moment that ``since`` means: a date or a time (UTC, unless it says otherwise), or ``now``; None is None.

    >>> moment_of("2026-03-01", datetime(2026, 5, 1, tzinfo=UTC))
    datetime.datetime(2026, 3, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    if since is None:
        return None
    if since.strip().lower() == NOW:
        return now
    try:
        found = datetime.fromisoformat(since.strip())
    except ValueError:
        raise InputError(
            f"since must be a date such as 2026-03-01, a time such as 2026-03-01T12:00:00+01:00, or now; got {since!r}"
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def since_text(since: Since) -> str | None:
    """``since`` as text, checked: YAML makes a date of 2026-03-01."""
    text = since.isoformat() if isinstance(since, date) else since
    moment_of(text, datetime.now(UTC))
    return text


def settling(settle: str, name: str = "settle") -> timedelta:
    """How long new rows are left alone.

    >>> settling("90s"), settling("0s")
    (datetime.timedelta(seconds=90), datetime.timedelta(0))
    """
    if _ZERO.match(settle.strip()):
        return timedelta()
    try:
        return duration(settle)
    except ValueError as exc:
        raise InputError(f"{name} {exc}, or 0s; got {settle!r}") from None
