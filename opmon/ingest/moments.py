"""When an event was, as its sender tells it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from opmon.types import Json

_UNITS = ((1e11, 1.0), (1e14, 1e-3), (1e17, 1e-6), (1e20, 1e-9))
"""Below which size a number since 1970 is in which unit, in seconds."""
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of(value: Json, came: str) -> str:
    """A time in UTC, which it is in where it names no zone; when the event came, where there is none that can be read.

    >>> moment_of("2026-03-01T13:00:00+01:00", "now"), moment_of(1772366400123, "now")
    ('2026-03-01T12:00:00+00:00', '2026-03-01T12:00:00.123000+00:00')
    >>> moment_of("yesterday", "now"), moment_of(None, "now"), moment_of("0001-01-01T00:00:00+05:00", "now")
    ('now', 'now', 'now')
    """
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
            unit = next(seconds for size, seconds in _UNITS if value < size)
            found = _FIRST + timedelta(seconds=round(value * unit, 6))
        else:
            return came
    except (ValueError, OverflowError, StopIteration):
        return came
    return found.isoformat()
