"""Monitors at a glance: how their models stand and why, their newest rounds, what they cost, and who has to act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from opmon.queries.needs import NeedView, needs_of
from opmon.queries.rolling import RollingPoint, rolling_as_of
from opmon.queries.rounds import RoundView, newest_rounds, round_views
from opmon.queries.standing import NO_ESTIMATE, ReasonView, Standing, standing_of
from opmon.queries.watch import Watch
from opmon.store import cycles, outbox, queue, revisions, rounds, ticks
from opmon.store.cycles import Ended
from opmon.store.engine import Connection
from opmon.store.outbox import Dead
from opmon.store.rounds import Unfinished


@dataclass(frozen=True)
class QueueView:
    """The tasks of a monitor's rounds, but for those that were given up."""

    asked: int
    spoken: int
    """How many of them somebody has spoken of: what the monitor has cost so far."""
    open: int
    """How many wait for annotators."""
    due_at: datetime | None
    """When the first round stops waiting for its labels."""


@dataclass(frozen=True)
class MonitorView:
    """A monitor: how its model version stands and why, its newest rounds first, and the tasks of all of them."""

    name: str
    quantity: str
    """What it estimates, with what that is measured in."""
    status: Standing
    why: str
    reasons: tuple[ReasonView, ...]
    """How each acting rule stands."""
    rules: tuple[str, ...]
    rounds: int
    queue: QueueView
    latest: RoundView | None
    """The newest round that has a final estimate."""
    rolling: RollingPoint | None
    newest: tuple[RoundView, ...]
    needs: tuple[NeedView, ...]
    last_success_at: datetime | None
    """When a cycle last did all that it had to do."""
    next_at: datetime | None
    """When its schedule begins it again: in the past, where nobody does; None where no service ever has."""


def monitor_view(connection: Connection, watch: Watch, now: datetime, *, shown: int) -> MonitorView:
    """A monitor with its ``shown`` newest rounds."""
    return monitor_views(connection, [watch], now, shown=shown)[0]


def monitor_views(connection: Connection, watches: Sequence[Watch], now: datetime, *, shown: int) -> list[MonitorView]:
    """The monitors with their ``shown`` newest rounds each."""
    books = _Books.read(connection, [watch.name for watch in watches])
    return [_view(connection, watch, now, shown, books) for watch in watches]


@dataclass(frozen=True)
class _Books:
    """What one query each tells of all monitors."""

    progress: Mapping[str, tuple[int, int]]
    unfinished: Mapping[str, Sequence[Unfinished]]
    dead: Mapping[str, Sequence[Dead]]
    ended: Mapping[str, Ended]
    begun: Mapping[str, datetime]

    @classmethod
    def read(cls, connection: Connection, names: Sequence[str]) -> _Books:
        return cls(
            queue.progress(connection, names),
            rounds.unfinished_of(connection, names),
            outbox.dead(connection, names),
            cycles.last(connection, names),
            ticks.last(connection),
        )


def _view(connection: Connection, watch: Watch, now: datetime, shown: int, books: _Books) -> MonitorView:
    name = watch.name
    newest = newest_rounds(connection, watch, now, shown)
    stands, rolling, latest = NO_ESTIMATE, None, None
    final = revisions.newest_final(connection, name)
    if final is not None:
        stands = standing_of(connection, name, final.model, watch.acting_rules)
        rolling = rolling_as_of(connection, name, final, rounds=watch.rolling_rounds, within=watch.rolling_within)
        latest = next((each for each in newest if each.number == final.round_number), None)
    if final is not None and latest is None:
        latest = round_views(connection, watch, now, [rounds.get(connection, name, final.round_number)])[0]
    unfinished, ended, begun = books.unfinished.get(name, ()), books.ended.get(name), books.begun.get(name)
    asked, spoken = books.progress.get(name, (0, 0))
    due = min((each.deadline_at for each in unfinished if each.open and each.deadline_at), default=None)
    return MonitorView(
        name=name,
        quantity=watch.quantity.title,
        status=stands.status,
        why=stands.why,
        reasons=stands.reasons,
        rules=watch.rules,
        rounds=newest[0].number if newest else rounds.count(connection, name),
        queue=QueueView(asked, spoken, asked - spoken, due),
        latest=latest,
        rolling=rolling,
        newest=tuple(newest),
        needs=needs_of(connection, name, stands, unfinished, books.dead.get(name, ()), ended),
        last_success_at=None if ended is None else ended.succeeded_at,
        next_at=None if begun is None or watch.next_after is None else watch.next_after(begun),
    )
