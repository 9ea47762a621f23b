"""Whether a monitor is alive: when its cycles ended and did all they had to do, and whether that is too long ago."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from opmon.queries.watch import Watch
from opmon.store import cycles, ticks
from opmon.store.cycles import Ended
from opmon.store.engine import Connection

AHEAD = timedelta(minutes=1)
"""A stored time so far ahead was written by a clock that was wrong: it is taken for now."""


@dataclass(frozen=True)
class Pulse:
    """Signs of life of one monitor."""

    monitor: str
    begun_at: datetime | None
    """When its schedule last began it; None if never."""
    ended: Ended | None
    """How its cycles ended; None if none has."""
    silent: bool
    """Whether no cycle has ended for as many periods as its configuration allows."""
    failing: bool
    """Whether its cycles end, and none of those of as many periods did all that it had to do."""

    @property
    def succeeded_at(self) -> datetime | None:
        """When a cycle last did all that it had to do."""
        return None if self.ended is None else self.ended.succeeded_at


def pulses(connection: Connection, watches: Sequence[Watch], now: datetime) -> list[Pulse]:
    """The pulse of each monitor, in the order given."""
    names = [watch.name for watch in watches]
    ended, begun = cycles.last(connection, names), ticks.last(connection)
    return [_pulse(watch, ended.get(watch.name), begun.get(watch.name), now) for watch in watches]


def _pulse(watch: Watch, ended: Ended | None, begun: datetime | None, now: datetime) -> Pulse:
    silent = is_silent(watch, begun, ended, now)
    succeeded = None if ended is None else ended.succeeded_at
    failing = ended is not None and not silent and (succeeded is None or is_over(watch, succeeded, now))
    return Pulse(watch.name, begun, ended, silent, failing)


def is_silent(watch: Watch, begun: datetime | None, ended: Ended | None, now: datetime) -> bool:
    """Whether no cycle of a monitor has ended for too long that a service begins.

    One that nobody ever began by its schedule is none of a service's, nor one that went on long after a service last
    began it: ``opmon run`` keeps to other times.
    """
    if begun is None or (ended is not None and is_over(watch, begun, ended.at)):
        return False
    return is_over(watch, begun if ended is None else ended.at, now)


def is_over(watch: Watch, last: datetime | None, now: datetime) -> bool:
    """Whether more than the allowed periods have gone by since; what never began, or is yet to come, is not late."""
    if last is None or watch.silent_from is None or last > now + AHEAD:
        return False
    until = watch.silent_from(min(last, now))
    return until is not None and until < now
