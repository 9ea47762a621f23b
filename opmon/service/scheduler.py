"""``opmon serve``: every monitor on its cron or interval, in one process, until told to stop.

* A monitor never overlaps with itself: not in this process (``max_instances=1``), nor with another (the lease).
* What fell due while nothing ran is caught up once, not once for each time missed.
* Between the scheduled times, labels that complete a round and deliveries that are due are seen to within seconds.
* SIGTERM and SIGINT let the step under way finish; a second one ends the process at once, which is safe too.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from opmon.config import ScheduleSettings, Settings
from opmon.errors import LeaseHeld, OpmonError
from opmon.monitor import Monitor
from opmon.store import ticks

log = logging.getLogger(__name__)

ATTENTION_SECONDS = 5


@dataclass
class Service:
    """All monitors of a configuration, run on their schedules."""

    settings: Settings
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    monitors: Mapping[str, Monitor] = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _busy: Mapping[str, threading.Lock] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.monitors = {
            name: Monitor.from_settings(self.settings, name, stopping=self._stop.is_set)
            for name in self.settings.monitors
        }
        self._busy = {name: threading.Lock() for name in self.monitors}

    def run(self) -> None:
        """Work until :meth:`stop` is called or a signal comes."""
        scheduler = self._scheduler()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._on_signal)
        scheduler.start()
        log.info("watching %s", ", ".join(self.monitors))
        self._stop.wait()
        log.info("stopping: the steps under way are finished first")
        scheduler.shutdown(wait=True)

    def stop(self) -> None:
        self._stop.set()

    def _scheduler(self) -> Any:
        from apscheduler.executors.pool import ThreadPoolExecutor
        from apscheduler.schedulers.background import BackgroundScheduler

        scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(max(2, min(8, len(self.monitors) + 1)))},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=UTC,
        )
        for name, monitor in self.monitors.items():
            trigger = trigger_of(monitor.settings.schedule)
            first = self._first_time(name, trigger)
            scheduler.add_job(self.tick, trigger, args=[name], id=name, next_run_time=first)
        scheduler.add_job(self.attend, "interval", seconds=ATTENTION_SECONDS, id="attend")
        return scheduler

    def _first_time(self, name: str, trigger: Any) -> datetime:
        """Now where a time was missed while nothing ran, else the next one."""
        now = self.clock()
        with self.monitors[name].store.read() as connection:
            last = ticks.last(connection).get(name)
        if last is None and not hasattr(trigger, "fields"):
            return now  # an interval has no time of day to wait for
        due: datetime | None = trigger.get_next_fire_time(last, last or now)
        return now if due is None or due <= now else due

    def tick(self, name: str) -> None:
        """One scheduled run of a monitor; whatever goes wrong is logged and the schedule goes on.

        Where :meth:`attend` is at it, this waits: a daily run must not be lost to a delivery.
        """
        monitor = self.monitors[name]
        try:
            with monitor.store.write() as connection:
                ticks.record(connection, name, self.clock())
            with self._busy[name]:
                self._advance(monitor)
        except Exception:
            log.exception("monitor %s failed; it will be tried again at its next time", name)

    def attend(self) -> None:
        """See to what labels and deliveries allow between the scheduled times."""
        for name, monitor in self.monitors.items():
            if self._stop.is_set() or not self._busy[name].acquire(blocking=False):
                continue
            try:
                if monitor.has_work():
                    self._advance(monitor, open_new=False)
            except Exception:
                log.exception("monitor %s failed between its scheduled times", name)
            finally:
                self._busy[name].release()

    def _advance(self, monitor: Monitor, *, open_new: bool = True) -> None:
        try:
            cycle = monitor.advance(open_new=open_new)
        except LeaseHeld as exc:
            log.info("%s", exc)
        except OpmonError as exc:
            log.warning("monitor %s: %s", monitor.settings.name, exc)
        else:
            log.info("monitor %s: %s", monitor.settings.name, cycle)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._stop.is_set():
            logging.shutdown()
            os._exit(128 + number)  # an exception would wait for the threads, which is what the first signal is for
        log.info("%s received", signal.Signals(number).name)
        self.stop()


def trigger_of(schedule: ScheduleSettings) -> Any:
    """APScheduler's trigger for a monitor's schedule, in UTC."""
    if schedule.cron is not None:
        from apscheduler.triggers.cron import CronTrigger

        return CronTrigger.from_crontab(schedule.cron, timezone=UTC)
    from apscheduler.triggers.interval import IntervalTrigger

    assert schedule.every is not None
    return IntervalTrigger(seconds=max(1, round(schedule.every.total_seconds())), timezone=UTC)
