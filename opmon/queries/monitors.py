"""Monitors at a glance: how their models stand and why, their newest rounds, what they cost, and who has to act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from opmon.queries.books import Books, QueueView
from opmon.queries.drifting import round_drift
from opmon.queries.expected import Foreseen, foreseen
from opmon.queries.needs import NeedView, alarms_of
from opmon.queries.rolling import RollingPoint, rolling_whole
from opmon.queries.rounds import RoundView, round_views
from opmon.queries.standing import NO_ESTIMATE, ReasonView, Standing, standing_of
from opmon.queries.watch import Watch
from opmon.store import revisions, rounds
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.store.truths import Read


@dataclass(frozen=True)
class MonitorView:
    """A monitor: how its model version stands and why, its newest rounds first, and the tasks of all of them."""

    name: str
    quantity: str
    """The quantity that it estimates, with its unit."""
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
    """When its schedule begins it again: in the past if no service runs; None if none ever did."""
    foreseen: Foreseen
    """What is expected of the rounds that wait for labels, and how such predictions did."""
    truth: Read | None = None
    """What was read of truth that arrives by itself; None where none was."""


def monitor_view(connection: Connection, watch: Watch, now: datetime, *, shown: int) -> MonitorView:
    """A monitor with its ``shown`` newest rounds, and what the drift of its newest final one came with."""
    return with_drift(connection, monitor_views(connection, [watch], now, shown=shown)[0])


def with_drift(connection: Connection, view: MonitorView) -> MonitorView:
    """The same with what the drift of its newest final round came with."""
    if view.latest is None:
        return view
    round_ = rounds.get(connection, view.name, view.latest.number)
    drift = round_drift(connection, round_, revisions.latest_estimate(connection, round_.id))
    return replace(view, latest=replace(view.latest, drift=drift))


def monitor_views(connection: Connection, watches: Sequence[Watch], now: datetime, *, shown: int) -> list[MonitorView]:
    """The monitors with their ``shown`` newest rounds each."""
    books = Books.read(connection, [watch.name for watch in watches], now)
    finals = [revisions.newest_final(connection, watch.name) for watch in watches]
    shown_of = [_shown(connection, watch, final, shown) for watch, final in zip(watches, finals, strict=True)]
    views = round_views(connection, list(zip(watches, shown_of, strict=True)), now)
    return [
        _view(connection, watch, final, own, shown, books)
        for watch, final, own in zip(watches, finals, views, strict=True)
    ]


def _shown(connection: Connection, watch: Watch, final: Revision | None, shown: int) -> list[Round]:
    """The newest rounds, and behind them the newest with a final estimate, where it is not one of them."""
    newest = rounds.newest(connection, watch.name, shown)
    if final is None or final.round_number in {round_.number for round_ in newest}:
        return newest
    return [*newest, rounds.get(connection, watch.name, final.round_number)]


def _view(
    connection: Connection,
    watch: Watch,
    final: Revision | None,
    views: Sequence[RoundView],
    shown: int,
    books: Books,
) -> MonitorView:
    name, newest = watch.name, tuple(views[:shown])
    stands, rolling, latest = NO_ESTIMATE, None, None
    if final is not None:
        stands = standing_of(connection, name, final.model, watch.acting_rules)
        rolling = rolling_whole(connection, name, final, rounds=watch.rolling_rounds, within=watch.rolling_within)
        latest = next(each for each in views if each.number == final.round_number)
    ended = books.ended.get(name)
    return MonitorView(
        name=name,
        quantity=watch.quantity.title,
        status=stands.status,
        why=stands.why,
        reasons=stands.reasons,
        rules=watch.rules,
        rounds=newest[0].number if newest else rounds.count(connection, name),
        queue=books.queue_of(name),
        latest=latest,
        rolling=rolling,
        newest=newest,
        needs=books.needs_of(watch, stands, alarms_of(connection, {watch.name: stands})[watch.name]),
        last_success_at=None if ended is None else ended.succeeded_at,
        next_at=books.next_at(watch),
        foreseen=foreseen(connection, name, watch.quantity),
        truth=books.truths.get(name),
    )
