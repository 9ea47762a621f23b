"""The part of a monitor's configuration that views depend on, as plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from opmon.quantities import ACCURACY, Quantity


@dataclass(frozen=True)
class Watch:
    """A monitor as configured; without rules and limits if it is no longer configured."""

    name: str
    quantity: Quantity = ACCURACY
    acting_rules: tuple[str, ...] = ()
    """The names of the rules whose alarms are more than advice."""
    advising_rules: tuple[str, ...] = ()
    rolling_rounds: int | None = 5
    rolling_within: timedelta | None = None
    min_inputs: int = 0
    max_age: timedelta = timedelta()
    next_after: Callable[[datetime], datetime | None] | None = None
    """When its schedule begins it again, from when it was last begun."""
    silent_from: Callable[[datetime], datetime | None] | None = None
    """From when on it is silent, from when its last cycle ended."""
    provider: str | None = None
    """The identity of its label provider; None where tasks only wait to be exported."""
    max_open: int | None = None
    """The number of open tasks from which on it opens no round."""
    truth: bool = False
    """Whether truth arrives by itself."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of all its rules."""
        return *self.acting_rules, *self.advising_rules
