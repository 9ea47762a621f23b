"""Whatever the clock does, no monitor is more than one period late."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from opmon.config import ScheduleSettings
from opmon.service.rests import backs_off, is_deadly
from opmon.service.timetable import Timetable
from opmon.store.cycles import Ended

HOURLY = {"every": "1h"}
CRON = {"cron": "0 * * * *"}


class World:
    """A time of day that jumps, and a clock that only goes forward; what was due, by hours since the beginning."""

    def __init__(self, clock: Any, **schedules: dict[str, str]) -> None:
        self.clock, self.moment, self.schedules = clock, 1000.0, schedules
        self.table = Timetable(clock, lambda: self.moment)
        self.told: list[tuple[float, str]] = []

    def begin(self, **last: Any) -> World:
        self.table.add_all({name: ScheduleSettings(**said) for name, said in self.schedules.items()}, last)
        return self

    def pass_(self, **duration: float) -> list[str]:
        """Time goes by; who was due meanwhile."""
        due = []
        for _ in range(round(timedelta(**duration).total_seconds() / 30)):
            self.moment += 30
            self.clock.pass_(seconds=30)
            due += self.table.due()
        return due


@pytest.mark.parametrize(
    ("schedule", "last", "due"),
    [
        (HOURLY, None, timedelta()),
        (HOURLY, timedelta(hours=-5), timedelta()),
        (HOURLY, timedelta(minutes=-20), timedelta(minutes=40)),
        ({"cron": "0 15 * * *"}, None, timedelta(hours=3)),
        ({"cron": "0 15 * * *"}, timedelta(days=-2), timedelta()),
        ({"cron": "0 15 * * *"}, timedelta(hours=-1), timedelta(hours=3)),
    ],
)
def test_what_was_missed_is_caught_up_once(
    clock: Any, schedule: dict[str, str], last: timedelta | None, due: timedelta
) -> None:
    world = World(clock, digits=schedule).begin(**({} if last is None else {"digits": clock() + last}))
    assert world.table.due() == ([] if due else ["digits"])
    assert world.pass_(seconds=due.total_seconds() - 30 if due else 0) == []
    assert world.pass_(seconds=30) == (["digits"] if due else [])


def test_a_monitor_is_due_once_a_period(clock: Any) -> None:
    world = World(clock, interval=HOURLY, cron=CRON).begin(interval=clock(), cron=clock())
    assert world.pass_(hours=5).count("interval") == 5
    assert world.pass_(hours=5).count("cron") == 5


def test_a_process_that_slept_catches_up_once(clock: Any) -> None:
    world = World(clock, interval=HOURLY, cron=CRON).begin(interval=clock(), cron=clock())
    world.moment += 5 * 3600
    clock.pass_(hours=5)
    assert sorted(world.table.due()) == ["cron", "interval"]
    assert world.pass_(minutes=59) == []
    assert sorted(world.pass_(minutes=1)) == ["cron", "interval"]


@pytest.mark.parametrize("hours", [-1, 1, -2, 48, -48])
@pytest.mark.parametrize("after", [1, 30, 59])
def test_a_clock_that_jumps_silences_nobody(clock: Any, hours: int, after: int, caplog: Any) -> None:
    world = World(clock, interval=HOURLY, cron=CRON).begin(interval=clock(), cron=clock())
    world.pass_(minutes=after)
    clock.pass_(hours=hours)
    with caplog.at_level(logging.WARNING):
        due = world.pass_(hours=1)
    assert set(due) == {"interval", "cron"}
    assert "the clock jumped by" in caplog.text
    assert set(world.pass_(hours=1)) == {"interval", "cron"}
    clock.pass_(hours=-hours)  # the clock is right again
    assert set(world.pass_(hours=1)) == {"interval", "cron"}


def test_a_clock_that_is_set_right_a_little_is_not_told(clock: Any, caplog: Any) -> None:
    world = World(clock, interval=HOURLY).begin(interval=clock())
    clock.pass_(seconds=-2)
    world.pass_(minutes=1)
    assert caplog.text == ""


def test_a_beginning_that_is_yet_to_come_is_told_and_not_gone_by(clock: Any, caplog: Any) -> None:
    ahead = clock() + timedelta(hours=2)
    world = World(clock, interval=HOURLY, cron=CRON).begin(interval=ahead, cron=ahead)
    assert "monitor interval was last begun at 2026-03-01 14:00:00 UTC, which is yet to come" in caplog.text
    assert "interval" in world.table.due()
    assert "cron" in world.pass_(hours=1)


def test_cron_is_in_its_time_zone_summer_and_winter(clock: Any) -> None:
    schedule = ScheduleSettings(cron="30 6 * * *", timezone="Europe/Berlin")
    hours = [schedule.next_after(datetime(2026, month, 10, tzinfo=UTC)).hour for month in (1, 7)]  # type: ignore[union-attr]
    assert hours == [5, 4]
    spring = schedule.next_after(datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert spring == datetime(2026, 3, 29, 4, 30, tzinfo=UTC)


def test_an_hour_that_comes_twice_or_never_is_begun_once() -> None:
    def times(cron: str, first: datetime, count: int) -> list[str]:
        schedule, at, found = ScheduleSettings(cron=cron, timezone="Europe/Berlin"), first, []
        for _ in range(count):
            at = schedule.next_after(at)  # type: ignore[assignment]
            found.append(f"{at:%d %H:%M}")
        return found

    assert times("30 2 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC), 3) == ["25 00:30", "26 01:30", "27 01:30"]
    assert times("30 2 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), 2) == ["29 01:30", "30 00:30"]
    assert times("30 */2 * * *", datetime(2026, 10, 24, 23, tzinfo=UTC), 2) == ["25 00:30", "25 03:30"]
    each = ["25 00:00", "25 00:30", "25 01:00", "25 01:30", "25 02:00"]
    assert times("*/30 * * * *", datetime(2026, 10, 24, 23, 45, tzinfo=UTC), 5) == each


def test_silence_that_begins_after_the_last_year_never_begins() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert ScheduleSettings(every="3660d", silent_after=1000).silent_from(now) is None
    assert ScheduleSettings(cron="0 0 29 2 mon", silent_after=1000).silent_from(now) is None
    assert ScheduleSettings(every="10s", silent_after=10_000).silent_from(now) == now + timedelta(seconds=100_000)


def test_jitter_puts_off_by_less_than_it_says_and_moves_no_later_time(clock: Any) -> None:
    world = World(clock, digits={"every": "1h", "jitter": "20m"}).begin(digits=clock())
    assert world.pass_(minutes=59) == []
    assert world.pass_(hours=10).count("digits") == 10


def test_what_was_missed_by_more_than_the_grace_is_left_out(clock: Any) -> None:
    late = {"every": "1h", "grace": "10m"}, {"cron": "0 * * * *", "grace": "10m"}
    world = World(clock, interval=late[0], cron=late[1]).begin(
        interval=clock() - timedelta(minutes=90), cron=clock() - timedelta(minutes=125)
    )
    clock.pass_(minutes=15)
    world.moment += 15 * 60
    assert world.table.due() == []
    assert sorted(world.pass_(hours=1)) == ["cron", "interval"]


def test_workers_begin_each_time_once_and_take_over(clock: Any, sqlite: str) -> None:
    from opmon.store.engine import connect

    store = connect(sqlite)
    one, two = (World(clock, digits=HOURLY, cron=CRON).begin(digits=clock(), cron=clock()) for _ in range(2))
    begun: list[str] = []

    def pass_(minutes: int, *alive: World) -> None:
        for _ in range(minutes):
            clock.pass_(minutes=1)
            for world in (one, two):
                world.moment += 60
            for world in alive:
                for name in world.table.due():
                    with store.write() as connection:
                        begun.extend([name] if world.table.claim(name)(connection) else [])

    pass_(20, one)
    pass_(280, one, two)
    assert (begun.count("digits"), begun.count("cron")) == (5, 5)
    pass_(120, two)
    assert (begun.count("digits"), begun.count("cron")) == (7, 7)
    clock.pass_(hours=-1)
    pass_(60, one, two)
    more = begun.count("digits") - 7, begun.count("cron") - 7
    assert set(more) <= {1, 2}, "a stored time that is yet to come silences nobody; one may be begun once more"


@pytest.mark.parametrize(("failures", "minutes"), [(1, 0), (2, 0), (3, 2), (4, 4), (5, 5), (50, 5)])
def test_a_monitor_that_fails_backs_off(clock: Any, failures: int, minutes: int) -> None:
    schedule = ScheduleSettings(every="1m")
    ended = Ended(clock(), None, "down", failures=failures)
    waits = [k for k in range(10) if backs_off(schedule, ended, clock() + timedelta(minutes=k))]
    assert len(waits) == minutes
    assert not backs_off(ScheduleSettings(every="1h"), ended, clock() + timedelta(minutes=1))


@pytest.mark.parametrize(("killed", "minutes"), [(2, 0), (3, 5), (4, 10), (5, 20), (50, 360)])
def test_a_monitor_that_ends_process_after_process_is_left_alone_longer_and_longer(
    clock: Any, killed: int, minutes: int
) -> None:
    ended = Ended(clock(), None, "ended", failures=killed, killed=killed)
    waits = [
        sum(is_deadly(name, ended, clock() + timedelta(minutes=k)) for k in range(1000)) for name in ("a", "b", "c")
    ]
    assert all(minutes <= wait <= 2 * minutes for wait in waits)
    assert not minutes or len(set(waits)) == 3, "those that were at work beside it are begun at other times"
