"""When each monitor is due, by a clock that only goes forward.

The time of day is not reliable: it is corrected, jumps by an hour, stops with a suspended machine. So an interval
is counted on the monotonic clock, and a cron schedule asks the time of day anew whenever that has jumped. Whatever the
clock does, a monitor is at most one period late. What fell due while nothing ran is caught up once, not once for each
time missed.

Several processes keep a timetable each. A time that one of them has begun is not open any more for the others, whose
own times may lie a little before or after it: so a monitor is begun about once a period, whoever does it.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from opmon.config import ScheduleSettings
from opmon.config.schedule import INSTANT
from opmon.store import cycles, ticks
from opmon.store.engine import Connection

log = logging.getLogger(__name__)

JUMP = timedelta(seconds=5)
"""A time of day that differs by so much from what it should be has jumped."""


class Schedule(Protocol):
    """When one monitor is due."""

    settings: ScheduleSettings
    open_after: datetime | None
    """Who has begun the monitor since then has begun its last time that was due."""

    def is_due(self, now: datetime, moment: float) -> bool:
        """Whether it is due at this time of day and moment of the monotonic clock; true once for each time."""

    def clock_jumped(self, now: datetime) -> None:
        """Note that the time of day has jumped."""


@dataclass
class Interval:
    """Due every so many seconds."""

    settings: ScheduleSettings
    seconds: float
    next_at: float
    open_after: datetime | None = None
    _late: float = 0.0
    """By how much its next time is put off."""

    @classmethod
    def begin(cls, settings: ScheduleSettings, last: datetime | None, now: datetime, moment: float) -> Interval:
        """Due at once where a time was missed, or none is known: an interval has no time of day to wait for."""
        assert settings.every is not None
        seconds = max(1.0, settings.every.total_seconds())
        waited = seconds if last is None else (now - last).total_seconds()
        next_at = moment + max(0.0, seconds - waited)
        if is_too_late(settings, waited - seconds):
            next_at = moment + seconds - waited % seconds
        return cls(settings, seconds, next_at, _late=_put_off(settings))

    def is_due(self, now: datetime, moment: float) -> bool:
        if moment < self.next_at + self._late:
            return False
        late = moment - self.next_at - self._late
        self.next_at += (late // self.seconds + 1) * self.seconds
        self._late = _put_off(self.settings)
        self.open_after = now - timedelta(seconds=_OWN_SHARE * self.seconds)
        return not is_too_late(self.settings, late)

    def clock_jumped(self, now: datetime) -> None:
        """Do nothing: an interval does not use the time of day."""


@dataclass
class Cron:
    """Due at times of the day."""

    settings: ScheduleSettings
    next_at: datetime | None
    open_after: datetime | None = None
    _late: timedelta = timedelta()

    @classmethod
    def begin(cls, settings: ScheduleSettings, last: datetime | None, now: datetime) -> Cron:
        """Due at its first time after ``last``; from now on where that is not known."""
        first = settings.next_after(now - INSTANT if last is None else last)
        return cls(settings, first, _late=timedelta(seconds=_put_off(settings)))

    def is_due(self, now: datetime, moment: float) -> bool:
        if self.next_at is None or now < self.next_at + self._late:
            return False
        late = (now - self.next_at - self._late).total_seconds()
        self.open_after = self.next_at - INSTANT
        self.next_at = self.settings.next_after(now)
        self._late = timedelta(seconds=_put_off(self.settings))
        return not is_too_late(self.settings, late)

    def clock_jumped(self, now: datetime) -> None:
        again = self.settings.next_after(now - INSTANT)
        if self.next_at is not None and again is not None:
            self.next_at = min(self.next_at, again)  # a time that the jump went over stays due


_OWN_SHARE = 0.6
"""A monitor on an interval that somebody has begun for less than this share of it is not begun again."""


def _put_off(settings: ScheduleSettings) -> float:
    if settings.jitter is None:
        return 0.0
    return random.uniform(0.0, settings.jitter.total_seconds())  # noqa: S311 - spreads load, guards nothing


def is_too_late(settings: ScheduleSettings, seconds: float) -> bool:
    """Whether a time that was due so many seconds ago is left out."""
    return settings.grace is not None and seconds > settings.grace.total_seconds() + _LOOK


_LOOK = 2.0
"""Seconds by which a time is late only because the timetable is looked at now and then."""


@dataclass
class Timetable:
    """When every monitor of a service is due."""

    clock: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic
    _schedules: dict[str, Schedule] = field(default_factory=dict)
    _seen: tuple[datetime, float] | None = None

    def add_all(self, schedules: Mapping[str, ScheduleSettings], last: Mapping[str, datetime]) -> None:
        """Take over what is configured now; ``last`` is when each was last begun, as far as it is known.

        Those whose schedule is the one they had keep their times.
        """
        now, moment = self.clock(), self.monotonic()
        self._seen = self._seen or (now, moment)
        known, kept = self._schedules, dict[str, Schedule]()
        for name, settings in schedules.items():
            if name in known and known[name].settings == settings:
                kept[name] = known[name]
                continue
            before = last.get(name)
            if before is not None and before > now + JUMP:
                log.warning(
                    "monitor %s was last begun at %s, which is yet to come: a clock was wrong, and this is not "
                    "gone by; check the clocks of the machines that run opmon",
                    name,
                    f"{before:%Y-%m-%d %H:%M:%S} UTC",
                )
                before = None
            kept[name] = schedule_of(settings, before, now, moment)
        self._schedules = kept

    def due(self) -> list[str]:
        """The monitors that are due now; each is told once for each of its times."""
        now, moment = self.clock(), self.monotonic()
        schedules = self._schedules
        if self._seen is not None:
            jump = (now - self._seen[0]) - timedelta(seconds=moment - self._seen[1])
            if abs(jump) > JUMP:
                log.warning("the clock jumped by %+.0f s; schedules go by what it says now", jump.total_seconds())
                for schedule in schedules.values():
                    schedule.clock_jumped(now)
        self._seen = now, moment
        return [name for name, schedule in schedules.items() if schedule.is_due(now, moment)]

    def is_open(self, name: str, begun: datetime | None, now: datetime) -> bool:
        """Whether nobody has begun the last time that was due, as far as is known when it was last ``begun``."""
        schedule = self._schedules.get(name)
        after = None if schedule is None else schedule.open_after
        return begun is None or after is None or not after < begun <= now + ticks.AHEAD

    def claim(self, name: str, *, anyway: bool = False, cut_off: bool = False) -> Callable[[Connection], bool]:
        """What notes, under the monitor's lease, that its time is begun; it says no where another process was first.

        ``anyway``: it is begun whoever else has. ``cut_off``: its last time was begun and not brought to its end; where
        that is still so, it is gone on with.
        """
        schedule = self._schedules.get(name)
        after = None if anyway or schedule is None else schedule.open_after

        def begin(connection: Connection) -> bool:
            if cut_off and name in cycles.cut_off(connection):
                return ticks.claim(connection, name, self.clock(), None)
            if cut_off and after is None and not anyway:
                return False  # another has gone on with it
            return ticks.claim(connection, name, self.clock(), after)

        return begin


def schedule_of(settings: ScheduleSettings, last: datetime | None, now: datetime, moment: float) -> Schedule:
    """The schedule that the configuration means."""
    if settings.cron is not None:
        return Cron.begin(settings, last, now)
    return Interval.begin(settings, last, now, moment)
