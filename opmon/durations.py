"""Durations as people write them: ``30s``, ``15m``, ``1h``, ``7d``, ``2w``, ``1y``."""

from __future__ import annotations

import re
from datetime import timedelta

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdwy])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_LONGEST = timedelta(days=3660)


def duration(value: object) -> timedelta:
    """
    >>> duration("90m")
    datetime.timedelta(seconds=5400)
    >>> duration("999999999w")
    Traceback (most recent call last):
    ValueError: must be longer than 0s and at most 3660d
    """
    if isinstance(value, timedelta):
        return value
    match = _DURATION.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError("must be a number with its unit, such as 30s, 15m, 1h, 7d, 2w or 1y")
    seconds = float(match.group(1)) * _SECONDS[match.group(2)]
    if seconds > _LONGEST.total_seconds() or not (found := timedelta(seconds=seconds)):
        raise ValueError("must be longer than 0s and at most 3660d")
    return found


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
