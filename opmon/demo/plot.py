"""The plan of the demo, and the events in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True)
class Plan:
    """The plan of the demo; the same seed gives the same digits, draws and answers."""

    seed: int = 0
    window_size: int = 1500
    """Inputs an hour."""
    budget: int = 150
    """Labels an hour."""
    threshold: float = 0.9
    healthy: int = 4
    """Windows before the drift begins."""
    drift: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    """The drift, from 0 to 1, in the windows after; it stays at the last value."""
    delay: int = 1
    """Windows that version 1 still answers after the alarm, while somebody retrains."""
    recovered: int = 4
    """Windows that version 2 answers."""
    most: int = 20
    """After so many windows without an alarm the demo gives up."""
    drift_report: bool = True

    @property
    def usual(self) -> int:
        """How many windows there are when the alarm comes with the full drift at the latest."""
        return self.healthy + len(self.drift) + self.delay + self.recovered

    def drift_of(self, number: int) -> float:
        step = number - self.healthy - 1
        return 0.0 if step < 0 else self.drift[min(step, len(self.drift) - 1)]


@dataclass(frozen=True)
class Hour:
    """One window: the truth, which only the demo knows, beside opmon's estimate."""

    window: int
    round: int
    model_version: str
    drift: float
    true: float
    estimate: float
    low: float
    high: float
    n: int
    labels: int
    failures: int
    ended_at: datetime
    alarm: bool
    """Whether the trigger fired in this window."""
    degraded: bool
    """Whether the rule is in alarm; it stays so until the model is replaced."""
    message: str

    @property
    def inside(self) -> bool:
        return self.low <= self.true <= self.high

    def row(self) -> dict[str, object]:
        return asdict(self) | {"inside": self.inside, "ended_at": self.ended_at.isoformat()}


@dataclass(frozen=True)
class Alarm:
    """The trigger fired: the event, and what it did to the registry."""

    event: str
    message: str
    tag: str
    page: Path


@dataclass(frozen=True)
class Retrained:
    """A new version answers from now on."""

    version: str
    labelled: int
    failures: int
