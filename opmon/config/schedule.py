"""When ``opmon serve`` looks at a monitor."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Self

from pydantic import field_validator, model_validator

from opmon.config.fields import Duration
from opmon.config.part import Part, at_key

INSTANT = timedelta(microseconds=1)
"""The least by which two times differ."""


class ScheduleSettings(Part):
    """When ``opmon serve`` looks at the monitor: ``every`` some time, or at the times of ``cron``."""

    every: Duration | None = None
    cron: str | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.every is None) == (self.cron is None):
            raise ValueError('must hold either every (such as 10m) or cron (such as "0 * * * *")')
        if self.every is not None and self.every.total_seconds() < 1:
            raise at_key("every", "must be at least 1s")
        return self

    def next_after(self, last: datetime) -> datetime | None:
        """The first of its times after ``last``; None where cron names a day that never comes."""
        if self.every is not None:
            return last + self.every
        from apscheduler.triggers.cron import CronTrigger

        trigger = CronTrigger.from_crontab(self.cron, timezone=UTC)
        following: datetime | None = trigger.get_next_fire_time(None, last + INSTANT)
        return following

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
