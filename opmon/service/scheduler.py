"""``opmon serve``: every monitor on its cron or interval, by as many processes as there are, until told to stop.

* A monitor never overlaps with itself: not in this process (the crew), nor with another (the lease). Workers on one
  database share the monitors: who begins a monitor's time notes it under the lease, and the others leave it.
* One that is slow or hangs delays no other: each works in a thread of its own.
* Between the scheduled times, labels that complete a round and deliveries that are due are seen to within seconds: one
  query tells for all monitors who has something to do. One that gets nowhere is asked less and less often, and one
  whose cycles fail is begun less and less often. A cycle that was cut off, as its process ended, is gone on with.
* SIGTERM and SIGINT let the steps under way finish, for :data:`LAST_STEPS` seconds; then nothing is waited for any
  more. All is safe: the next start goes on from the last transaction.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from opmon.abc import Registry
from opmon.ceiling import ceiling
from opmon.config import Settings
from opmon.config.registry import registry_of
from opmon.errors import LeaseHeld, OpmonError
from opmon.monitor import Monitor
from opmon.outgoing import overdue
from opmon.service import memory
from opmon.service.attention import Attention
from opmon.service.crew import Crew
from opmon.service.rests import FIRST_REST, Rests, backs_off, is_deadly
from opmon.service.stopping import LAST_RESORT, Signals
from opmon.service.timetable import Timetable, is_too_late
from opmon.service.watchdog import BUSY_SECONDS, Watchdog
from opmon.stages.timelines import end_those_gone
from opmon.store import cycles, leases, readiness, ticks
from opmon.store.engine import Connection, Store, open_store

log = logging.getLogger(__name__)

TIDYING_SECONDS = 900.0
"""How often the timelines of monitors are ended that are configured no more."""
GIVING_BACK_SECONDS = 60.0
"""How often memory that is free goes back to the system."""
LOOK_SECONDS = 1.0
"""How often the timetable is looked at."""
ATTENTION_SECONDS = FIRST_REST
"""How often is asked who has something to do between the scheduled times."""
CYCLE_SECONDS = 300.0
"""After so long a cycle begins no further step; the next one, which comes at once, goes on."""
LAST_STEPS = 4.0
MOST_HANGING = 8
"""Cycles that were given up on and still hang: with more of them the process is not healthy."""
STANDSTILL_SECONDS = 30.0
"""A service that has not looked at its timetable for so long does not move any more."""


@dataclass
class Service:
    """All monitors of a configuration, run on their schedules."""

    settings: Settings
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    reload: Callable[[bool], object] = lambda forced: None
    """Looks whether the configuration has changed; true: reads it again in any case."""
    store: Store = field(init=False)
    registry: Registry = field(init=False)
    monitors: Mapping[str, Monitor] = field(init=False)
    crew: Crew = field(init=False, repr=False)
    table: Timetable = field(init=False, repr=False)
    attention: Attention = field(init=False, repr=False)
    watchdog: Watchdog = field(init=False, repr=False)
    role: str = "all"
    rests: Rests = field(init=False, repr=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _owed: set[str] = field(default_factory=set, repr=False)
    """Monitors whose scheduled run another process, or a fault, kept from beginning, or that ran out of time."""
    _unfinished: set[str] = field(default_factory=set, repr=False)
    """Those of them that had begun: they go on, whoever has begun them meanwhile."""
    _cut_off: set[str] = field(default_factory=set, repr=False)
    """Monitors whose time somebody had begun who is not at it any more: whoever is first goes on."""
    _at_work: dict[str, Monitor] = field(default_factory=dict, repr=False)
    """Whose cycles are under way, as they were configured when these began."""
    _untimed: bool = field(default=True, repr=False)
    """Whether the timetable does not yet know the monitors there are."""
    _looked: float | None = None

    def __post_init__(self) -> None:
        self.store = open_store(self.settings.database.get_secret_value())
        self.registry = registry_of(self.settings)
        self.attention = Attention(self.clock, self.monotonic)
        self.monitors = {name: self._monitor(self.settings, name) for name in self.settings.monitors}
        self.crew = Crew(self.work, monotonic=self.monotonic, waits=self.attention.waits)
        self.rests = Rests(lambda: self.monotonic())
        self.table = Timetable(self.clock, self.monotonic)
        self.watchdog = Watchdog(
            self.store, lambda: self.monitors, self.attention, self.clock, self.role, stop=self._stop
        )

    def _monitor(self, settings: Settings, name: str) -> Monitor:
        monitor = Monitor.from_settings(settings, name, store=self.store, registry=self.registry)
        monitor.stopping = self._stop.is_set
        monitor.progress = lambda what, done, total: self.attention.moved(name)
        return monitor

    def run(self) -> None:
        """Work until :meth:`stop` is called or a signal comes."""
        Signals(self.stop, lambda: self.reload(True), lambda: self._told(self.crew.wait(0))).listen()
        self.timetable()
        threading.Thread(target=self._attend_always, name="attention", daemon=True).start()
        threading.Thread(target=self.watchdog.run, name="watchdog", daemon=True).start()
        log.info("watching %s", ", ".join(self.monitors))
        while not self._stop.is_set():
            self._looked = self.monotonic()
            ceiling.renew()
            try:
                self.look()
                self.give_up_stalled()
                self.reload(False)
            except OpmonError as exc:
                log.warning("%s", exc)
            except Exception:
                log.exception("the timetable could not be looked at; it will be tried again")
            self._stop.wait(LOOK_SECONDS)
        self._finish()

    def stop(self) -> None:
        self._stop.set()

    def standstill(self) -> str | None:
        """Why nothing moves any more; None where it does."""
        if self._looked is None or self._stop.is_set():
            return None
        hanging = self.crew.hanging()
        if hanging > MOST_HANGING:
            return f"{hanging} cycles that were given up on still hang: only a restart ends them"
        seconds = self.monotonic() - self._looked
        return f"the timetable has not been looked at for {seconds:.0f} s" if seconds > STANDSTILL_SECONDS else None

    def stuck(self) -> dict[str, str]:
        """The monitors at which nothing has moved for long, and what each is at since when."""
        busy = self.attention.busy(BUSY_SECONDS, still=BUSY_SECONDS)
        return {name: f"{at.stage or 'at work'}, since {at.moved:%H:%M:%S} UTC" for name, at in busy.items()}

    def take(self, settings: Settings) -> None:
        """Take over a configuration: monitors that are other than before are made anew, and begun by their schedules.

        A cycle that is under way goes on to its end as it was.
        """
        old = self.settings
        self.monitors = {
            name: self.monitors[name] if old.monitors.get(name) == own else self._monitor(settings, name)
            for name, own in settings.monitors.items()
        }
        self.settings, self._untimed = settings, True
        try:
            self.timetable()
        except OpmonError as exc:
            log.warning("%s", exc)  # they are begun when it answers again

    def timetable(self) -> Timetable:
        """When each monitor is due, from when it was last begun."""
        with self.store.read() as connection:
            last = ticks.last(connection)
        self.table.add_all({name: monitor.settings.schedule for name, monitor in self.monitors.items()}, last)
        self._untimed = False
        return self.table

    def look(self) -> None:
        """Start the monitors that are due, but for those that another process has begun, and those that back off."""
        if self._untimed:
            self.timetable()
        due = self.table.due()
        try:
            names = self._unbegun(due)
        except OpmonError:
            self._owed.update(due)
            raise
        for name in names:
            self.crew.want(name, open_new=True)
        self.crew.tend()

    def _unbegun(self, names: list[str]) -> list[str]:
        """Those of the monitors that are to be begun, first who has waited for longest: a worker that starts while all
        are due would make the last ones wait anew, and one that starts again and again for ever."""
        if not names:
            return []
        now, never = self.clock(), datetime.min.replace(tzinfo=UTC)
        with self.store.read() as connection:
            begun, ended = ticks.last(connection), cycles.last(connection, names)
        found = [
            name
            for name in names
            if self.table.is_open(name, begun.get(name), now)
            and not backs_off(self.monitors[name].settings.schedule, ended.get(name), now)
            and not is_deadly(name, ended.get(name), now)
        ]
        return sorted(found, key=lambda name: begun.get(name, never))

    def give_up_stalled(self) -> None:
        """Give up the cycles in which nothing has moved for too long: their leases run out, and others may begin."""
        for name in self.attention.stalled(self._patience):
            hanging, at = self._at_work.get(name), self.attention.busy(0).get(name)
            if at is None:
                continue  # it has just ended
            log.error(
                "monitor %s: nothing has moved for %.0f min in %s; the cycle is given up, and begun anew",
                *(name, self._patience(name) / 60, at.stage or "its work"),
            )
            overdue.count("cycle")
            self.attention.forget(name)
            if hanging is not None:
                hanging.given_up = True
            if name in self.monitors:
                if self.monitors[name] is hanging:
                    self.monitors = {**self.monitors, name: self._monitor(self.settings, name)}
                self._unfinished.add(name)
                self._owed.add(name)
            self.crew.give_up(name)

    def _patience(self, name: str) -> float:
        """How long a cycle under way may stand still: as its monitor said when it began."""
        monitor = self._at_work.get(name)
        return math.inf if monitor is None else monitor.settings.schedule.give_up_after.total_seconds()

    def attend(self) -> None:
        """Start the monitors that have something to do between their scheduled times."""
        with self.store.read() as connection:
            names = readiness.monitors_with_work(connection, self.clock())
            self._cut_off = self._left_behind(connection)
            names = (names | self._owed | self._cut_off) & set(self.monitors)
            ended = cycles.last(connection, names) if names else {}
        self.rests.keep(names)
        for name in sorted(names - self.crew.busy()):
            if self.rests.is_over(name) and not is_deadly(name, ended.get(name), self.clock()):
                self.crew.want(name, open_new=name in self._owed | self._cut_off)

    def _left_behind(self, connection: Connection) -> set[str]:
        """The monitors whose time was begun and did not come to its end, and at which nobody is any more."""
        begun, now = cycles.cut_off(connection), self.clock()
        found = {
            name
            for name, monitor in self.monitors.items()
            if name in begun and not is_too_late(monitor.settings.schedule, (now - begun[name]).total_seconds())
        }
        return found - leases.held(connection) if found else found

    def work(self, name: str, open_new: bool) -> None:
        """One cycle of a monitor; whatever goes wrong is logged, and the schedule goes on."""
        monitor = self.monitors.get(name)
        if monitor is None:  # the configuration was changed meanwhile
            self._owed.discard(name)
            self._unfinished.discard(name)
            return
        self._at_work[name] = monitor
        try:
            with self.attention.on(name):
                self._work(monitor, name, open_new)
        finally:
            if self._at_work.get(name) is monitor:  # one that was given up on may end when the next has long begun
                del self._at_work[name]

    def _work(self, monitor: Monitor, name: str, open_new: bool) -> None:
        cut_off = name in self._cut_off
        begin = self.table.claim(name, anyway=name in self._unfinished, cut_off=cut_off) if open_new else None
        owed = {name} if open_new and not cut_off else set()  # of one that was cut off the database tells
        try:
            cycle = monitor.advance(open_new=open_new, seconds=CYCLE_SECONDS, begin=begin)
        except LeaseHeld as exc:
            log.debug("%s", exc)
            self.rests.rest_for_lease(name)
            self._owed |= owed
        except OpmonError as exc:
            log.warning("monitor %s: %s", name, exc)
            self.rests.rest(name)
            self._owed |= owed  # it may not have begun: where it has, it is not begun again
        except Exception:
            log.exception("monitor %s failed; it will be tried again", name)
            self.rests.rest(name)
            self._owed |= owed
        else:
            log.log(logging.INFO if cycle.has_done else logging.DEBUG, "monitor %s: %s", name, cycle)
            if open_new:
                self._unfinished.discard(name)
                self._owed.discard(name)
                if cycle.is_over:
                    self._unfinished.add(name)
                    self._owed.add(name)
            if cycle.problems or not (open_new or cycle.closed or cycle.delivered):
                self.rests.rest(name)
            else:
                self.rests.end(name)

    def _attend_always(self) -> None:
        tidied = given_back = self.monotonic()
        while not self._stop.wait(ATTENTION_SECONDS):
            try:
                self.attend()
                if self.monotonic() - given_back >= GIVING_BACK_SECONDS:
                    given_back = self.monotonic()
                    memory.give_back()
                if self.monotonic() - tidied >= TIDYING_SECONDS:
                    tidied = self.monotonic()
                    with self.registry.within(ATTENTION_SECONDS):
                        end_those_gone(self.store, self.registry, set(self.monitors), self.clock())
            except OpmonError as exc:
                log.warning("%s", exc)
            except Exception:
                log.exception("nobody could be attended to; it will be tried again")

    def _finish(self) -> None:
        """Wait for the steps under way, but not for ever."""
        self.crew.close()
        busy = self.crew.wait(LAST_STEPS)
        if busy:
            log.warning("not finished within %g s, and not waited for any more: %s", LAST_STEPS, self._told(busy))
            self.registry.give_up()
            self.crew.wait(LAST_RESORT)
        try:
            self.watchdog.leave()
        except OpmonError as exc:
            log.debug("%s", exc)

    def _told(self, names: set[str]) -> str:
        """The monitors, each with what it is at."""
        at = self.attention.busy(0)
        stages = {name: at[name].stage for name in names if name in at}
        return "; ".join(f"{name} ({stages[name]})" if stages.get(name) else name for name in sorted(names))
