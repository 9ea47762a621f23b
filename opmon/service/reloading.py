"""The configuration, read again while the service runs: when its file has changed, or when somebody asks for it.

A new one that is wrong is told, and the old goes on. So it does where the new one names another database, registry,
state folder or address: those are what the process stands on, and take a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from opmon.config import Settings
from opmon.errors import OpmonError

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
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
    _seen: tuple[int, int, int] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._seen = self._stamp()

    def look(self, forced: bool = False) -> None:
        """Read the configuration again where its file has changed, or where that is asked for."""
        stamp = self._stamp()
        if (stamp is None or stamp == self._seen) and not forced:  # a file that is being replaced is not there
            return
        self._seen = stamp
        try:
            self._take(self.load())
        except OpmonError as exc:
            self.good = False
            log.error("the new configuration in %s is not used, and the old goes on: %s", self.path, exc)
        except Exception:
            self.good = False
            log.exception("the new configuration in %s is not used, and the old goes on", self.path)

    def _take(self, new: Settings) -> None:
        ground = [key for key in GROUND if getattr(new, key) != getattr(self.settings, key)]
        if ground:
            self.good = False
            log.error(
                "the new configuration in %s is not used, and the old goes on: %s can only be changed by a restart",
                *(self.path, " and ".join(ground)),
            )
            return
        later = [key for key in LATER if getattr(new, key) != getattr(self.settings, key)]
        old, self.settings = self.settings, new.model_copy(update={key: getattr(self.settings, key) for key in LATER})
        for take in self.takers:
            take(self.settings)
        self.good = True
        changed = _changed(old, self.settings)
        restart = f"; a restart takes over {' and '.join(later)}" if later else ""
        log.info("the configuration was read again: %s%s", changed, restart)
        try:
            self.note(changed)
        except OpmonError as exc:
            log.warning("the new configuration is used, but that is not in the audit: %s", exc)

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
        "changed": [name for name, own in new.monitors.items() if name in old.monitors and own != old.monitors[name]],
        "gone": [name for name in old.monitors if name not in new.monitors],
    }
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names) or "no monitor changed"
