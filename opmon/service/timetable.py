"""When each monitor is due, by a clock that only goes forward.

The time of day is not reliable: it is corrected, jumps by an hour, stops with a suspended machine. So an interval
is counted on the monotonic clock, and a cron schedule asks the time of day anew whenever that has jumped. Whatever the
clock does, a monitor is at most one period late. What fell due while nothing ran is caught up once, not once for each
time missed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from opmon.config import ScheduleSettings
from opmon.config.schedule import INSTANT

log = logging.getLogger(__name__)

JUMP = timedelta(seconds=5)
"""A time of day that differs by so much from what it should be has jumped."""


class Schedule(Protocol):
    """When one monitor is due."""

    def is_due(self, now: datetime, moment: float) -> bool:
        """Whether it is due at this time of day and moment of the monotonic clock; true once for each time."""

    def clock_jumped(self, now: datetime) -> None:
        """Note that the time of day has jumped."""


@dataclass
class Interval:
    """Due every so many seconds."""

    seconds: float
    next_at: float

    @classmethod
    def begin(cls, seconds: float, last: datetime | None, now: datetime, moment: float) -> Interval:
        """Due at once where a time was missed, or none is known: an interval has no time of day to wait for."""
        waited = seconds if last is None else (now - last).total_seconds()
        return cls(seconds, moment + max(0.0, seconds - waited))

    def is_due(self, now: datetime, moment: float) -> bool:
        if moment < self.next_at:
            return False
        missed = (moment - self.next_at) // self.seconds
        self.next_at += (missed + 1) * self.seconds
        return True

    def clock_jumped(self, now: datetime) -> None:
        """Do nothing: an interval does not use the time of day."""


@dataclass
class Cron:
    """Due at times of the day, in UTC."""

    next_after: Callable[[datetime], datetime | None]
    next_at: datetime | None

    @classmethod
    def begin(cls, next_after: Callable[[datetime], datetime | None], last: datetime | None, now: datetime) -> Cron:
        """Due at its first time after ``last``; from now on where that is not known."""
        return cls(next_after, next_after(now - INSTANT if last is None else last))

    def is_due(self, now: datetime, moment: float) -> bool:
        if self.next_at is None or now < self.next_at:
            return False
        self.next_at = self.next_after(now)
        return True

    def clock_jumped(self, now: datetime) -> None:
        again = self.next_after(now - INSTANT)
        if self.next_at is not None and again is not None:
            self.next_at = min(self.next_at, again)  # a time that the jump went over stays due


@dataclass
class Timetable:
    """When every monitor of a service is due."""

    clock: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic
    _schedules: dict[str, Schedule] = field(default_factory=dict)
    _seen: tuple[datetime, float] | None = None

    def add_all(self, schedules: Mapping[str, ScheduleSettings], last: Mapping[str, datetime]) -> None:
        """Take over what is configured; ``last`` is when each was last begun, as far as it is known."""
        now, moment = self.clock(), self.monotonic()
        self._seen = now, moment
        for name, settings in schedules.items():
            before = last.get(name)
            if before is not None and before > now + JUMP:
                log.warning(
                    "monitor %s was last begun at %s, which is yet to come: a clock was wrong, and this is not "
                    "gone by; check the clocks of the machines that run opmon",
                    name,
                    f"{before:%Y-%m-%d %H:%M:%S} UTC",
                )
                before = None
            self._schedules[name] = schedule_of(settings, before, now, moment)

    def due(self) -> list[str]:
        """The monitors that are due now; each is told once for each of its times."""
        now, moment = self.clock(), self.monotonic()
        if self._seen is not None:
            jump = (now - self._seen[0]) - timedelta(seconds=moment - self._seen[1])
            if abs(jump) > JUMP:
                log.warning("the clock jumped by %+.0f s; schedules go by what it says now", jump.total_seconds())
                for schedule in self._schedules.values():
                    schedule.clock_jumped(now)
        self._seen = now, moment
        return [name for name, schedule in self._schedules.items() if schedule.is_due(now, moment)]


def schedule_of(settings: ScheduleSettings, last: datetime | None, now: datetime, moment: float) -> Schedule:
    """The schedule that the configuration means."""
    if settings.cron is not None:
        return Cron.begin(settings.next_after, last, now)
    assert settings.every is not None
    return Interval.begin(max(1.0, settings.every.total_seconds()), last, now, moment)
