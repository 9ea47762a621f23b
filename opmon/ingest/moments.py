"""When an event was, as its sender tells it."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from opmon.jobs.moments import moments_of
from opmon.types import Json


def moment_of(value: Json, came: str) -> str:
    """A time in UTC, which it is in where it names no zone; when the event came, where there is none that can be read.

    >>> moment_of("2026-03-01T13:00:00+01:00", "now"), moment_of(1772366400123, "now")
    ('2026-03-01T12:00:00+00:00', '2026-03-01T12:00:00.123000+00:00')
    >>> moment_of("yesterday", "now"), moment_of(None, "now"), moment_of("0001-01-01T00:00:00+05:00", "now")
    ('now', 'now', 'now')
    """
    found: datetime | None = None
    try:
        if isinstance(value, str):  # most are, and reading one by itself as a column takes a hundred times as long
            found = datetime.fromisoformat(value.strip())
            found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            (found,) = moments_of(pa.array([value], pa.float64()), None).to_pylist()
    except (ValueError, OverflowError):
        return came
    return came if found is None else found.isoformat()
