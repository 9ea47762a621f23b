"""When ``opmon serve`` looks at a monitor."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from opmon.config.fields import Count, Duration
from opmon.config.part import Part, at_key
from opmon.durations import show_duration

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger

INSTANT = timedelta(microseconds=1)
"""The least by which two times differ."""
LEAST_SILENCE = timedelta(minutes=2)
"""However short its periods are, no monitor is silent sooner."""
MOST_PERIODS = 10_000
"""Of how many periods silence may be: the times of cron are gone through one by one."""
_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_LOOKED_AT, _A_YEAR = 120, timedelta(days=366)


class ScheduleSettings(Part):
    """When ``opmon serve`` looks at the monitor: ``every`` some time, or at the times of ``cron``.

    What falls due while nothing runs, or while the monitor is still at work, is made up for once, however often it fell
    due.
    """

    every: Duration | None = None
    cron: str | None = None
    timezone: str = "UTC"
    """What the times of ``cron`` are in, such as Europe/Berlin, summer time and all."""
    jitter: Duration | None = None
    """Each time is put off by a random while of at most so much, so that many monitors do not begin together."""
    grace: Duration | None = None
    """A time that was missed by more than this is left out; None: it is made up for, however late."""
    silent_after: Annotated[Count, Field(le=MOST_PERIODS)] = 3
    """So many periods without a cycle that ended, and the monitor is told to be silent."""
    give_up_after: Duration = Field(default="30m")  # type: ignore[assignment]
    """A cycle in which nothing moves for so long is given up: it is begun anew, by whichever worker is first."""

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.every is None) == (self.cron is None):
            raise ValueError('must hold either every (such as 10m) or cron (such as "0 * * * *")')
        if self.every is not None and self.every.total_seconds() < 1:
            raise at_key("every", "must be at least 1s")
        if self.every is not None and self.jitter is not None and self.jitter >= self.every:
            raise at_key("jitter", "must be shorter than every")
        if self.cron is not None and self.next_after(_ANY_DAY) is None:
            raise at_key("cron", "names a day that never comes, such as 30 February")
        if self.cron is not None and self.jitter is not None and self.jitter >= (gap := self._shortest_gap()):
            raise at_key("jitter", f"must be shorter than the shortest time between two of cron, {show_duration(gap)}")
        return self

    def _shortest_gap(self) -> timedelta:
        """Between the next times of cron, as far as they are looked at."""
        times: list[datetime] = []
        following = self.next_after(_ANY_DAY)
        while following is not None and len(times) < _LOOKED_AT and following - _ANY_DAY < _A_YEAR:
            times.append(following)
            following = self.next_after(following)
        return min((later - earlier for earlier, later in pairwise(times)), default=_A_YEAR)

    def next_after(self, last: datetime) -> datetime | None:
        """The first of its times after ``last``; None where cron names a day that never comes.

        An hour that comes twice when summer time ends counts once where ``cron`` names it.
        """
        if self.every is not None:
            return last + self.every
        assert self.cron is not None
        following: datetime | None = _trigger(self.cron, self.timezone).get_next_fire_time(None, last + INSTANT)
        if following is None:
            return None
        names_hours = self.cron.split()[1] not in ("*", "*/1")
        if names_hours and following.astimezone(ZoneInfo(self.timezone)).fold:
            return self.next_after(following.astimezone(UTC))
        return following.astimezone(UTC)

    def silent_from(self, last: datetime) -> datetime | None:
        """When a monitor whose last cycle ended then is silent; None where its time never comes."""
        found: datetime | None = last
        try:
            if self.every is not None:
                return last + max(self.every * self.silent_after, LEAST_SILENCE)
            for _ in range(self.silent_after):
                found = None if found is None else self.next_after(found)
        except OverflowError:  # beyond the year 9999
            return None
        return None if found is None else max(found, last + LEAST_SILENCE)

    @field_validator("timezone")
    @classmethod
    def _a_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as exc:
            raise ValueError("must be a time zone such as UTC or Europe/Berlin") from exc
        return value

    @field_validator("cron")
    @classmethod
    def _crontab(cls, value: str | None) -> str | None:
        if value is not None:
            from apscheduler.triggers.cron import CronTrigger

            if re.search(r"(?<![/\d])\d", value.split()[-1] if len(value.split()) == 5 else ""):
                raise ValueError("must name weekdays, such as mon-fri: the numbers mean other days in other crons")
            try:
                CronTrigger.from_crontab(value)
            except ValueError as exc:
                raise ValueError(
                    f'must be five fields: minute hour day month weekday, such as "0 * * * *" ({exc})'
                ) from exc
        return value


@lru_cache(maxsize=1000)
def _trigger(cron: str, timezone: str) -> CronTrigger:
    from apscheduler.triggers.cron import CronTrigger

    return CronTrigger.from_crontab(cron, timezone=ZoneInfo(timezone))
