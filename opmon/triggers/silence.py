"""Silence windows: times of the week in which an action waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from opmon.errors import InputError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW = re.compile(
    r"(?:(?P<days>[a-z,\-]+)(?:\s+|\Z))?(?:(?P<start>\d{1,2}:\d\d)-(?P<end>\d{1,2}:\d\d))?(?:\s*(?P<zone>[A-Z][\w/+\-]*))?\Z"
)


@dataclass(frozen=True)
class Silence:
    """From ``start`` to ``end`` on ``days`` (0 is Monday); over midnight where ``end`` is not after ``start``."""

    days: frozenset[int]
    start: time
    end: time
    zone: str = "UTC"

    @classmethod
    def parse(cls, text: str) -> Silence:
        """
        >>> sorted(Silence.parse("mon-fri 22:00-07:00").days), Silence.parse("sat,sun").end
        ([0, 1, 2, 3, 4], datetime.time(0, 0))
        """
        match = _WINDOW.match(text.strip()) if isinstance(text, str) else None
        if match is None or not (match["days"] or match["start"]):
            raise InputError(
                f"silence must hold windows such as '22:00-07:00', 'sat,sun' or 'mon-fri 22:00-07:00 Europe/Berlin'; "
                f"got {text!r}"
            )
        zone = match["zone"] or "UTC"
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InputError(f"silence: there is no time zone {zone!r}; write one such as Europe/Berlin") from None
        start, end = _time(match["start"] or "0:00", text), _time(match["end"] or "0:00", text)
        return cls(_days(match["days"], text), start, end, zone)

    def ends(self, at: datetime) -> datetime | None:
        """When the window that ``at`` lies in ends; None where it lies in none."""
        local = at.astimezone(ZoneInfo(self.zone))
        for back in (1, 0):
            day = local.date() - timedelta(days=back)
            if day.weekday() not in self.days:
                continue
            begins = datetime.combine(day, self.start, local.tzinfo)
            over = day if self.end > self.start else day + timedelta(days=1)
            ends = datetime.combine(over, self.end, local.tzinfo)
            if begins <= local < ends:
                return ends.astimezone(UTC)
        return None


def silent_until(windows: Sequence[Silence], at: datetime) -> datetime:
    """The first moment from ``at`` on that lies in no window; a week later where there is none."""
    moment = at
    for _ in range(64):
        ends = [end for window in windows if (end := window.ends(moment)) is not None]
        if not ends:
            return moment
        moment = max(ends)
        if moment - at > timedelta(days=7):
            break
    return min(moment, at + timedelta(days=7))


def _days(text: str | None, whole: str) -> frozenset[int]:
    if text is None:
        return frozenset(range(7))
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise InputError(f"silence: the days are {', '.join(DAYS)}; got {whole!r}")
        start, stop = DAYS.index(first), DAYS.index(last or first)
        found |= {day % 7 for day in range(start, (stop if stop >= start else stop + 7) + 1)}
    return frozenset(found)


def _time(text: str, whole: str) -> time:
    hour, _, minute = text.partition(":")
    if int(hour) == 24 and int(minute) == 0:
        return time(0, 0)
    if int(hour) > 23 or int(minute) > 59:
        raise InputError(f"silence: a time runs from 0:00 to 24:00; got {whole!r}")
    return time(int(hour), int(minute))
