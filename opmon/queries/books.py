"""What views of many monitors are made from, read with one query each for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from opmon.queries.needs import NeedView, needs_of
from opmon.queries.pulse import Pulse, is_silent
from opmon.queries.silence import what_hangs, why_silent
from opmon.queries.standing import StandingView
from opmon.queries.watch import Watch
from opmon.store import assigning, cycles, handing, outbox, queue, rounds, set_aside, ticks, truths, workers
from opmon.store.cycles import Ended
from opmon.store.engine import Connection
from opmon.store.handing import Standing as Provider
from opmon.store.outbox import Undelivered
from opmon.store.rounds import Unfinished
from opmon.store.set_aside import SetAside
from opmon.store.truths import Read
from opmon.store.workers import Worker
from opmon.types import Document


@dataclass(frozen=True)
class QueueView:
    """The tasks of a monitor's rounds, except rounds that were given up."""

    asked: int
    spoken: int
    """Of how many all was said that was asked."""
    open: int
    """How many wait for annotators."""
    due_at: datetime | None
    """When the first round stops waiting for its labels."""
    further: int = 0
    """Those of the open ones that somebody has spoken of: they wait for a further opinion."""


@dataclass(frozen=True)
class Books:
    """The results of one query each for all monitors."""

    progress: Mapping[str, tuple[int, int, int]]
    unfinished: Mapping[str, Sequence[Unfinished]]
    undelivered: Mapping[str, Sequence[Undelivered]]
    ended: Mapping[str, Ended]
    begun: Mapping[str, datetime]
    failing: Mapping[tuple[str, str], Provider]
    """Label providers whose last call failed, by monitor and provider."""

    aside: Mapping[str, Sequence[SetAside]]
    """Parts of the logs that cannot be read."""
    truths: Mapping[str, Read]
    further: Mapping[str, int]
    """How many tasks wait for a further opinion."""
    workers: Sequence[Worker]
    now: datetime

    @classmethod
    def read(cls, connection: Connection, names: Sequence[str], now: datetime) -> Books:
        return cls(
            queue.progress(connection, names, now),
            rounds.unfinished_of(connection, names, now),
            outbox.undelivered(connection, names),
            cycles.last(connection, names),
            ticks.last(connection),
            handing.failing(connection, names),
            set_aside.of_monitors(connection, names),
            truths.last_read(connection, names),
            assigning.lacking_further(connection, names),
            workers.known(connection),
            now,
        )

    def queue_of(self, name: str) -> QueueView:
        """The tasks of a monitor."""
        asked, spoken, waiting = self.progress.get(name, (0, 0, 0))
        dues = (each.deadline_at for each in self.unfinished.get(name, ()) if each.open)
        due = min((due for due in dues if due is not None), default=None)
        return QueueView(asked, spoken, waiting, due, self.further.get(name, 0))

    def needs_of(self, watch: Watch, stands: StandingView, alarms: Mapping[str, Document]) -> tuple[NeedView, ...]:
        """What a monitor that stands so needs of a person; ``alarms`` are the events of its alarms, by rule."""
        name = watch.name
        return needs_of(
            stands,
            self.unfinished.get(name, ()),
            self.undelivered.get(name, ()),
            self.ended.get(name),
            None if watch.provider is None else self.failing.get((name, watch.provider)),
            watch.max_open,
            self.aside.get(name, ()),
            self._silence(watch),
            alarms,
            what_hangs(name, self.workers, self.now),
        )

    def _silence(self, watch: Watch) -> str | None:
        """Why the monitor is silent; None where it is not."""
        begun, ended = self.begun.get(watch.name), self.ended.get(watch.name)
        if not is_silent(watch, begun, ended, self.now):
            return None
        return why_silent(Pulse(watch.name, begun, ended, silent=True, failing=False), self.workers, self.now)

    def next_at(self, watch: Watch) -> datetime | None:
        """When the monitor's schedule begins it again."""
        begun = self.begun.get(watch.name)
        return None if begun is None or watch.next_after is None else watch.next_after(begun)
