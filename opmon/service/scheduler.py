"""``opmon serve``: every monitor on its cron or interval, in one process, until told to stop.

* A monitor never overlaps with itself: not in this process (the crew), nor with another (the lease).
* One that is slow or hangs delays no other: each works in a thread of its own.
* Between the scheduled times, labels that complete a round and deliveries that are due are seen to within seconds: one
  query tells for all monitors who has something to do. One that gets nowhere is asked less and less often.
* SIGTERM and SIGINT let the steps under way finish, for :data:`LAST_STEPS` seconds; then nothing is waited for any
  more, and after :data:`LAST_RESORT` the process ends whatever hangs. A second signal ends it at once. All is safe: the
  next start goes on from the last transaction.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType

from opmon.abc import Registry
from opmon.config import Settings
from opmon.config.registry import registry_of
from opmon.errors import LeaseHeld, OpmonError
from opmon.monitor import Monitor
from opmon.service.crew import Crew
from opmon.service.timetable import Timetable
from opmon.store import readiness, ticks
from opmon.store.engine import Store, open_store

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often the timetable is looked at."""
ATTENTION_SECONDS = 5.0
"""How often is asked who has something to do between the scheduled times."""
LONGEST_REST = 300.0
"""How long a monitor that gets nowhere is left alone between its scheduled times, at most."""
CYCLE_SECONDS = 300.0
"""After so long a cycle begins no further step; the next one, which comes at once, goes on."""
LAST_STEPS = 4.0
LAST_RESORT = 8.0


@dataclass
class Service:
    """All monitors of a configuration, run on their schedules."""

    settings: Settings
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    store: Store = field(init=False)
    registry: Registry = field(init=False)
    monitors: Mapping[str, Monitor] = field(init=False)
    crew: Crew = field(init=False, repr=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _finished: threading.Event = field(default_factory=threading.Event, repr=False)
    _signals: queue.SimpleQueue[int] = field(default_factory=queue.SimpleQueue, repr=False)
    _told_to_stop: bool = False
    _rests: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    """For monitors that got nowhere: until when they are left alone, and for how many seconds."""
    _owed: set[str] = field(default_factory=set, repr=False)
    """Monitors whose scheduled run another process kept from beginning, or that ran out of time."""

    def __post_init__(self) -> None:
        self.store = open_store(self.settings.database.get_secret_value())
        self.registry = registry_of(self.settings)
        self.monitors = {
            name: Monitor.from_settings(
                self.settings, name, store=self.store, registry=self.registry, stopping=self._stop.is_set
            )
            for name in self.settings.monitors
        }
        self.crew = Crew(self.work, monotonic=self.monotonic)

    def run(self) -> None:
        """Work until :meth:`stop` is called or a signal comes."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._on_signal)
            threading.Thread(target=self._obey, name="signals", daemon=True).start()
        timetable = self.timetable()
        threading.Thread(target=self._attend_always, name="attention", daemon=True).start()
        log.info("watching %s", ", ".join(self.monitors))
        while not self._stop.is_set():
            for name in timetable.due():
                self.crew.want(name, open_new=True)
            self.crew.tend()
            self._stop.wait(LOOK_SECONDS)
        self._finish()

    def stop(self) -> None:
        self._stop.set()

    def timetable(self) -> Timetable:
        """When each monitor is due, from when it was last begun."""
        with self.store.read() as connection:
            last = ticks.last(connection)
        timetable = Timetable(self.clock, self.monotonic)
        timetable.add_all({name: monitor.settings.schedule for name, monitor in self.monitors.items()}, last)
        return timetable

    def attend(self) -> None:
        """Start the monitors that have something to do between their scheduled times."""
        with self.store.read() as connection:
            names = readiness.monitors_with_work(connection, self.clock())
        names = (names & set(self.monitors)) | self._owed
        for name in set(self._rests) - names:
            self._rests.pop(name, None)
        for name in sorted(names - self.crew.busy()):
            if self.monotonic() >= self._rests.get(name, (0.0, 0.0))[0]:
                self.crew.want(name, open_new=name in self._owed)

    def work(self, name: str, open_new: bool) -> None:
        """One cycle of a monitor; whatever goes wrong is logged, and the schedule goes on."""
        monitor = self.monitors[name]
        try:
            if open_new:
                with self.store.write() as connection:
                    ticks.record(connection, name, self.clock())
            cycle = monitor.advance(open_new=open_new, seconds=CYCLE_SECONDS)
        except LeaseHeld as exc:
            log.info("%s", exc)
            self._rest(name)
            if open_new:
                self._owed.add(name)
        except OpmonError as exc:
            log.warning("monitor %s: %s", name, exc)
            self._rest(name)
        except Exception:
            log.exception("monitor %s failed; it will be tried again at its next time", name)
            self._rest(name)
        else:
            log.info("monitor %s: %s", name, cycle)
            if open_new:
                (self._owed.add if cycle.is_over else self._owed.discard)(name)
            if cycle.problems or not (open_new or cycle.closed or cycle.delivered):
                self._rest(name)
            else:
                self._rests.pop(name, None)

    def _rest(self, name: str) -> None:
        """Leave a monitor alone between its scheduled times, twice as long as the last time."""
        seconds = min(2 * self._rests.get(name, (0.0, ATTENTION_SECONDS / 2))[1], LONGEST_REST)
        self._rests[name] = self.monotonic() + seconds, seconds

    def _attend_always(self) -> None:
        while not self._stop.wait(ATTENTION_SECONDS):
            try:
                self.attend()
            except OpmonError as exc:
                log.warning("%s", exc)
            except Exception:
                log.exception("nobody could be attended to; it will be tried again")

    def _finish(self) -> None:
        """Wait for the steps under way, but not for ever."""
        self.crew.close()
        busy = self.crew.wait(LAST_STEPS)
        if busy:
            log.warning("MLflow is not waited for any more, for the sake of %s: nothing is lost", _named(busy))
            self.registry.give_up()
            self.crew.wait(LAST_RESORT)
        self._finished.set()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Nothing here takes a lock: a signal may come while this very thread has it."""
        if self._told_to_stop:
            os._exit(128 + number)  # an exception would wait for the threads, which is what the first signal is for
        self._told_to_stop = True
        self._signals.put(number)

    def _obey(self) -> None:
        """Stop when a signal comes; after :data:`LAST_RESORT` end the process, whatever still hangs."""
        number = self._signals.get()
        log.info("%s received: the steps under way are finished first", signal.Signals(number).name)
        self.stop()
        if not self._finished.wait(LAST_RESORT):
            busy = _named(self.crew.wait(0))
            log.warning("ending while %s is at work: nothing is lost, the next start goes on", busy or "somebody")
            os._exit(0)


def _named(names: set[str]) -> str:
    return ", ".join(sorted(names))
