"""The configuration, read again while the service runs: when its file has changed, or when somebody asks for it.

A new one that is wrong is told, and the old goes on. So it does where the new one names another database, registry,
state folder or address: those are what the process stands on, and take a restart. What is wrong with one may lie
outside of its file, such as the right to read it: it is tried again until one is taken over, whole or not at all.
Half a file may be a good configuration too: one that has changed is read when it has stood still for
:data:`SETTLED_SECONDS`.

The file is read in a thread of its own: a disk that hangs holds no monitor up for longer than :data:`READ_SECONDS`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from opmon.config import MonitorSettings, Settings
from opmon.errors import ConfigError, OpmonError
from opmon.logs.repeats import EVENT
from opmon.waiting import start

T = TypeVar("T")

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 30.0
"""How often one that could not be taken over is tried again; one that never stands still is read after so long too."""
SETTLED_SECONDS = 2.0
"""A file to which nobody has written for so long is whole."""
GONE_SECONDS = 10.0
"""A file that has not been there for so long is not being replaced: it is gone."""
READ_SECONDS = 10.0
"""After so long whoever reads the file is not waited for any more."""
GROUND = ("database", "state", "mlflow", "registry")
"""What the process stands on: a configuration that changes it is not taken over at all."""
LATER = ("ingest", "web", "metrics")
"""What is taken over with the next start; the rest of the configuration is taken over at once."""


@dataclass
class Reloading:
    """Looks after the file of a configuration."""

    path: Path
    settings: Settings
    """Those in use."""
    load: Callable[[], Settings]
    takers: list[Callable[[Settings], None]]
    """Who takes over a new configuration."""
    note: Callable[[str], None] = lambda changed: None
    """Keeps for the audit that a new one was taken over."""
    good: bool = True
    """Whether the newest configuration could be taken over."""
    monotonic: Callable[[], float] = time.monotonic
    _seen: tuple[int, int, int] | None = field(default=None, repr=False)
    """The file as it was last read."""
    _newest: tuple[int, int, int] | None = field(default=None, repr=False)
    """The file as it was last looked at."""
    _moved: float = field(default=0.0, repr=False)
    """When it was first seen like that."""
    _still: float = field(default=0.0, repr=False)
    """When it was last seen as it was last read."""
    _tried: float = field(default=0.0, repr=False)
    """When it was last read."""
    _there: float = field(default=0.0, repr=False)
    """When the file was last there."""
    _hanging: Future[Any] | None = field(default=None, repr=False)
    """What reads the file and is not waited for any more."""
    _refused: str | None = field(default=None, repr=False)
    """Why the file as it is was refused, as it was told."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._seen = self._newest = self._stamp()
        self._there = self._still = self.monotonic()

    def look(self, forced: bool = False) -> None:
        """Read the configuration again where its file has changed, or where that is asked for."""
        if not self._lock.acquire(blocking=forced):
            return  # somebody looks just now
        try:
            if forced:
                self._refused = None  # whoever asks is answered
            if self._hanging is None or self._hanging.done():
                self._hanging = None
                self._look(forced)
            elif forced:
                self._refuse("its disk still hangs")
        except OpmonError as exc:
            self._refuse(str(exc))
        except Exception as exc:  # noqa: BLE001 - told with its traceback
            self._refuse(type(exc).__name__, exc)
        finally:
            self._lock.release()

    def _look(self, forced: bool) -> None:
        stamp, now = self._waited(self._stamp), self.monotonic()
        self._there = self._there if stamp is None else now
        self._still = now if stamp == self._seen else self._still
        if stamp != self._newest:
            self._newest, self._moved = stamp, now
        if forced or self._is_due(stamp, now):
            if stamp != self._seen:
                self._refused = None
            self._seen, self._tried, self._still = stamp, now, now
            new = self._waited(self.load)
            if forced or self._waited(self._stamp) == stamp:  # else somebody wrote meanwhile: it is read again
                self._take(new)

    def _refuse(self, why: str, fault: Exception | None = None) -> None:
        """Tell that the old configuration goes on: each time that the file has changed, not each time it is tried."""
        self.good = False
        if why != self._refused:
            log.error(
                "the new configuration in %s is not used, and the old goes on: %s",
                *(self.path, why),
                exc_info=fault,
                extra={EVENT: True},
            )
        self._refused = why

    def _waited(self, function: Callable[[], T]) -> T:
        """What is read; an error where that takes too long: nothing more is read until it ends."""
        future, _ = start(function, "configuration")
        if not wait((future,), READ_SECONDS).done:
            self._hanging = future
            raise ConfigError(f"it could not be read within {READ_SECONDS:g} s; does the disk hang that holds it?")
        return future.result()

    def _is_due(self, stamp: tuple[int, int, int] | None, now: float) -> bool:
        if stamp is None and now - self._there < GONE_SECONDS:
            return False  # a file that is being replaced is not there
        if stamp != self._seen:
            return now - self._moved >= SETTLED_SECONDS or now - self._still >= AGAIN_SECONDS
        return not self.good and now - self._tried >= AGAIN_SECONDS

    def _take(self, new: Settings) -> None:
        ground = [key for key in GROUND if getattr(new, key) != getattr(self.settings, key)]
        if ground:
            self._refuse(f"{' and '.join(ground)} can only be changed by a restart")
            return
        later = [key for key in LATER if getattr(new, key) != getattr(self.settings, key)]
        old, new = self.settings, new.model_copy(update={key: getattr(self.settings, key) for key in LATER})
        self._hand(old, new)
        self.settings, self.good, self._refused = new, True, None
        changed = _changed(old, self.settings)
        restart = f"; a restart takes over {' and '.join(later)}" if later else ""
        log.info("the configuration was read again: %s%s", changed, restart)
        try:
            self.note(changed)
        except OpmonError as exc:
            log.warning("the new configuration is used, but that is not in the audit: %s", exc)

    def _hand(self, old: Settings, new: Settings) -> None:
        """Give everybody the new configuration, or leave everybody the old one."""
        for count, take in enumerate(self.takers, 1):
            try:
                take(new)
            except Exception:
                for again in self.takers[:count]:
                    again(old)
                raise

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _changed(old: Settings, new: Settings) -> str:
    """Which monitors are new, other than before, or gone, in words."""
    kinds = {
        "new": [name for name in new.monitors if name not in old.monitors],
        "changed": [name for name, own in new.monitors.items() if name in old.monitors and _is_other(own, old)],
        "gone": [name for name in old.monitors if name not in new.monitors],
    }
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names) or "no monitor changed"


def _is_other(own: MonitorSettings, old: Settings) -> bool:
    """Whether a monitor is configured otherwise than before, whatever others there are beside it."""
    before = old.monitors[own.name]
    return own.model_copy(update={"before": before.before}) != before
