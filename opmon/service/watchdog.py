"""Who watches the watchers: every worker says that it is there, and one of them looks for monitors that are silent.

A monitor of which no cycle has ended for as many periods as its configuration allows is told to its actions, as an
event ``opmon.silent`` through the outbox, with what is known of the reason, and as ``opmon.heard`` when they end again.
The worker that does so needs the lease of the watchdog, not that of the monitor: whoever holds that one may hang.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import opmon
from opmon.config import MonitorSettings
from opmon.errors import LeaseHeld, OpmonError
from opmon.monitor import Monitor
from opmon.outgoing.breaker import left_alone
from opmon.queries.pulse import Pulse, is_over, pulses
from opmon.queries.silence import why_silent
from opmon.service.attention import Attention
from opmon.store import outbox, rounds, workers
from opmon.store.engine import Connection, Store
from opmon.store.leases import Lease, hold
from opmon.store.workers import Worker
from opmon.triggers import delivery
from opmon.types import Json

log = logging.getLogger(__name__)

BEAT_SECONDS = 15.0
BUSY_SECONDS = 30.0
"""What has been worked on for so long is told."""
GRACE = timedelta(minutes=10)
"""After a pause in which no worker was there, as all had left in order, cycles have so long to end before any monitor
is called silent; less where its periods are shorter. Workers that died did not leave: they cost no such time."""
LEASE = "@watchdog"
"""No monitor can be called so."""


@dataclass
class Watchdog:
    """Says that this process is there, and looks after the monitors of all."""

    store: Store
    monitors: Callable[[], Mapping[str, Monitor]]
    attention: Attention
    clock: Callable[[], datetime]
    role: str = "worker"
    stop: threading.Event = field(default_factory=threading.Event)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    started_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.clock()

    def run(self) -> None:
        """Beat and look until told to stop; then leave. A target that hangs keeps nobody from hearing the beats."""
        self._try(self.beat)  # who looks is there, too
        beats = threading.Thread(target=lambda: self._again(self.beat), name="heartbeat", daemon=True)
        beats.start()
        self._try(self.look)
        self._again(self.look)
        beats.join()

    def _again(self, step: Callable[[], None]) -> None:
        while not self.stop.wait(BEAT_SECONDS):
            self._try(step)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except LeaseHeld:
            log.debug("another worker looks for silent monitors")
        except OpmonError as exc:
            log.warning("%s", exc)
        except Exception:
            log.exception("nobody looked for silent monitors; it will be tried again")

    def beat(self) -> None:
        """Say that this process is there, and what it has long been at."""
        said = Worker(
            id=self.id,
            process=f"process {os.getpid()} on {socket.gethostname()}",
            role=self.role,
            version=opmon.__version__,
            started_at=self.started_at,
            seen_at=self.clock(),
            busy=self.attention.busy(BUSY_SECONDS),
            breakers=left_alone(),
        )
        with self.store.write() as connection:
            workers.say(connection, said)

    def leave(self) -> None:
        """Say that this process ends."""
        with self.store.write() as connection:
            workers.leave(connection, self.id)

    def look(self) -> None:
        """Raise an event for each monitor that has become silent, or is heard again, and deliver those that wait."""
        monitors = self.monitors()
        with self.store.read() as connection:
            found = pulses(connection, [each.settings.watch for each in monitors.values()], self.clock())
            told = outbox.newest_types(connection, outbox.SILENCE)
            waiting = outbox.waiting_of(connection, outbox.SILENCE, self.clock())
            known = workers.known(connection)
        since = min([self.started_at, *(each.started_at for each in known)])
        new = [
            pulse
            for pulse in found
            if pulse.silent != (told.get(pulse.monitor) == outbox.SILENT)
            and not (pulse.silent and self._has_just_begun(monitors[pulse.monitor].settings, since))
        ]
        if not new and not waiting & set(monitors):
            return
        with hold(self.store, LEASE) as lease:
            for pulse in new:
                self._tell(lease, monitors[pulse.monitor].settings, pulse, known)
            for name in sorted((waiting | {pulse.monitor for pulse in new}) & set(monitors)):
                actions = monitors[name].actions()
                delivery.deliver(lease, name, actions, self.clock, self.stop.is_set, rule=outbox.SILENCE)

    def _has_just_begun(self, settings: MonitorSettings, since: datetime) -> bool:
        """Whether the workers, there ``since``, may yet end a cycle of the monitor that was due before."""
        now = self.clock()
        return now - since < GRACE and not is_over(settings.watch, since, now)

    def _tell(self, lease: Lease, settings: MonitorSettings, pulse: Pulse, known: Sequence[Worker]) -> None:
        now = self.clock()
        message = why_silent(pulse, known, now) if pulse.silent else "cycles end again"
        with lease.write() as connection:
            event = _event(connection, pulse, message, now)
            at = outbox.next_moment(connection, pulse.monitor, outbox.SILENCE, now)
            if outbox.add(connection, None, event, {action.name: now for action in settings.actions}, at):
                level = logging.WARNING if pulse.silent else logging.INFO
                log.log(level, "monitor %s %s", pulse.monitor, f"is silent: {message}" if pulse.silent else "is heard")


def _event(connection: Connection, pulse: Pulse, message: str, now: datetime) -> dict[str, Json]:
    """The event; the same silence gives the same one."""
    kind = outbox.SILENT if pulse.silent else outbox.HEARD
    last = pulse.begun_at if pulse.ended is None else pulse.ended.at
    return {
        "id": outbox.event_id(pulse.monitor, outbox.SILENCE, "", kind, "" if last is None else last.isoformat()),
        "type": kind,
        "state": "silent" if pulse.silent else "heard",
        "monitor": pulse.monitor,
        "rule": outbox.SILENCE,
        "round": rounds.count(connection, pulse.monitor) or None,
        "at": now.isoformat(),
        "message": message,
        "last_success": None if pulse.succeeded_at is None else pulse.succeeded_at.isoformat(),
    }
