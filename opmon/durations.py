"""Durations as people write them: ``30s``, ``15m``, ``1h``, ``7d``, ``2w``, ``1y``."""

from __future__ import annotations

import re
from datetime import timedelta

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdwy])\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks", "y": "years"}
_LONGEST = timedelta(days=3660)


def duration(value: object) -> timedelta:
    """
    >>> duration("90m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(value, timedelta):
        return value
    match = _DURATION.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError("must be a number with its unit, such as 30s, 15m, 1h, 7d, 2w or 1y")
    number, unit = float(match.group(1)), _UNITS[match.group(2)]
    if match.group(2) == "y":
        number, unit = 365 * number, "days"
    if number > 10**9 or not timedelta() < timedelta(**{unit: number}) <= _LONGEST:
        raise ValueError("must be longer than 0s and at most 3660d")
    return timedelta(**{unit: number})


def show_duration(value: timedelta) -> str:
    """
    >>> show_duration(timedelta(seconds=5400))
    '90m'
    """
    seconds = value.total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
