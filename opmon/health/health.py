"""What one process knows of its health: is it alive, can it do its work, and what do the monitors show?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol

from opmon.config import Settings
from opmon.errors import OpmonError
from opmon.health.exposition import exposed, of_process, of_workers
from opmon.health.probe import Probe, Unanswered
from opmon.queries.gauges import Gauges, gauges
from opmon.queries.pulse import Pulse, pulses
from opmon.store import workers
from opmon.store.engine import Store
from opmon.store.trying import why_no_writes
from opmon.store.workers import Worker
from opmon.types import Json
from opmon.wording import counted

log = logging.getLogger(__name__)

Role = Literal["web", "worker", "all"]
ASK_SECONDS = 5.0
"""How long an answer of the registry, or of the database, is waited for."""
ALIVE_SECONDS = 0.5
"""How long the database is waited for where it is asked whether the process lives: that does not depend on it."""
REMEMBERED = 15.0
"""For so long what the registry answered is good, and that the database took a write."""
HUNG_SECONDS = 60.0
"""A trial write that has not ended after so long hangs: who waits for another writer is told sooner that it is busy."""
_NAMED = 20
"""Monitors that are named in one reason at most."""


def _now() -> datetime:
    return datetime.now(UTC)


class Configured(Protocol):
    """Knows whether the newest configuration could be taken over."""

    good: bool


@dataclass
class Health:
    """The health of one process."""

    settings: Settings
    store: Store
    role: Role = "all"
    standstill: Callable[[], str | None] = lambda: None
    """Why the process does not move any more; None where it does."""
    registry: Callable[[], str] | None = None
    """Asks the registry, where the process needs it: a line that says what answered, or an error."""
    configuration: Configured | None = None
    clock: Callable[[], datetime] = _now
    stuck: Callable[[], Mapping[str, str]] = dict
    """The monitors at which nothing has moved for long, and what each is at."""
    _registry_probe: Probe[str | None] = field(init=False, repr=False)
    _pulse_probe: Probe[list[Pulse] | None] = field(init=False, repr=False)
    _write_probe: Probe[str | None] = field(init=False, repr=False)
    _metrics_probe: Probe[tuple[list[Gauges] | None, list[Worker]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._registry_probe = Probe(self._ask_registry, "registry-probe", REMEMBERED)
        self._pulse_probe = Probe(self._ask_pulses, "database-probe")
        self._write_probe = Probe(self._ask_to_write, "write-probe", REMEMBERED)
        self._metrics_probe = Probe(self._ask_metrics, "metrics-probe")

    def take(self, settings: Settings) -> None:
        """Take over a configuration."""
        self.settings = settings

    def metrics(self, accept: str = "") -> tuple[bytes, str]:
        """The metrics, and their media type; those of monitors only where the database tells them in time."""
        try:
            told, alive = self._metrics_probe.answer(ASK_SECONDS)
        except Unanswered:
            log.warning("the metrics of monitors are left out: the database has not answered for %g s", ASK_SECONDS)
            told, alive = None, []
        good = None if self.configuration is None else self.configuration.good
        return exposed(told, [*of_process(told is not None, good), *of_workers(alive, self.clock())], accept)

    def _ask_metrics(self) -> tuple[list[Gauges] | None, list[Worker]]:
        watches = [monitor.watch for monitor in self.settings.monitors.values()]
        try:
            with self.store.read() as connection:
                told = gauges(connection, watches, self.clock())
                return told, [each for each in workers.known(connection) if each.is_alive(self.clock())]
        except OpmonError as exc:
            log.warning("the metrics of monitors are left out: %s", exc)
            return None, []

    def alive(self, *, names: bool = False) -> tuple[bool, dict[str, Json]]:
        """Whether the process should go on, and which monitors are silent: a restart need not help those."""
        why = self.standstill()
        told: dict[str, Json] = {"status": "ok" if why is None else "failing"}
        if why is not None:
            told["reasons"] = [why]
        known = [] if self.role == "web" else self._pulses(ALIVE_SECONDS) or []
        silent = [pulse.monitor for pulse in known if pulse.silent]
        if silent:
            told["silent"] = list(silent) if names else len(silent)
        stuck = dict(self.stuck())
        if stuck:
            told["stuck"] = dict(stuck) if names else len(stuck)
        return why is None, told

    def can_ask(self) -> bool:
        """Whether the database answers at once."""
        return self._pulses(ALIVE_SECONDS) is not None

    def ready(self, excluded: Sequence[str] = (), *, names: bool = False) -> tuple[bool, dict[str, Json]]:
        """Whether the process can do its work now, and if not, why: ``excluded`` are checks that do not count.

        For the pages alone the database is enough; monitors are named only to those who may know them.
        """
        found = self._pulses(ASK_SECONDS)
        checks = {"database": "the database does not answer" if found is None else self._no_writes()}
        if self.role != "web":
            if self.registry is not None:
                checks["registry"] = self._registry()
            checks["monitors"] = None if found is None else _late(found, names)
        reasons = {name: why for name, why in checks.items() if why is not None and name not in excluded}
        told: dict[str, Json] = {
            "status": "failing" if reasons else "ready",
            "checks": {name: "ok" if why is None else why for name, why in checks.items()},
        }
        if found is not None and names:
            told["last_success"] = {pulse.monitor: _iso(pulse.succeeded_at) for pulse in found}
        if reasons:
            told["reasons"] = list(reasons.values())
        return not reasons, told

    def _pulses(self, seconds: float) -> list[Pulse] | None:
        """The pulse of each monitor; None where the database does not tell."""
        try:
            return self._pulse_probe.answer(seconds)
        except Unanswered:
            log.warning("the database has not answered for %g s", seconds)
            return None

    def _ask_pulses(self) -> list[Pulse] | None:
        watches = [monitor.watch for monitor in self.settings.monitors.values()]
        try:
            with self.store.read() as connection:
                return pulses(connection, watches, self.clock())
        except OpmonError as exc:
            log.warning("%s", exc)
        except Exception:
            log.exception("the database could not be asked")
        return None

    def _no_writes(self) -> str | None:
        """Why the database takes no writes; one in which another writes for long is not at fault."""
        try:
            return self._write_probe.answer(ASK_SECONDS)
        except Unanswered as exc:
            if exc.seconds < HUNG_SECONDS:
                return None
            return f"the database answers, but a write has not ended for {exc.seconds:.0f} s"

    def _ask_to_write(self) -> str | None:
        try:
            return why_no_writes(self.store, self.clock())
        except Exception as exc:
            log.exception("the database could not be written")
            return f"the database could not be written: {type(exc).__name__}"

    def _registry(self) -> str | None:
        """Why the registry cannot be used."""
        try:
            return self._registry_probe.answer(ASK_SECONDS)
        except Unanswered:
            return f"the registry has not answered for {ASK_SECONDS:g} s"

    def _ask_registry(self) -> str | None:
        assert self.registry is not None
        try:
            self.registry()
        except OpmonError as exc:
            return str(exc)
        except Exception as exc:
            log.exception("the registry could not be asked")
            return f"the registry could not be asked: {type(exc).__name__}"
        return None


def _late(found: Sequence[Pulse], names: bool) -> str | None:
    """Which monitors do not do what they should; None where all do."""
    silent = [pulse.monitor for pulse in found if pulse.silent]
    failing = [pulse.monitor for pulse in found if pulse.failing]
    parts = [
        f"{counted(len(each), 'monitor')} {what}{f': {_some(each)}' if names else ''}"
        for each, what in ((silent, "silent"), (failing, "without a success"))
        if each
    ]
    return "; ".join(parts) or None


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
