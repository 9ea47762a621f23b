"""All monitors at a glance, a line each: how each stands and why, its last estimates, its costs, what needs a person.

What lines show is what :mod:`opmon.queries.monitors` tells of one monitor, from a few queries for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from opmon.queries.books import Books, QueueView
from opmon.queries.needs import NeedView, alarms_of
from opmon.queries.standing import NO_ESTIMATE, ReasonView, Standing, StandingView, standing_of
from opmon.queries.watch import Watch
from opmon.store import glances, revisions
from opmon.store.engine import Connection
from opmon.store.glances import Glance
from opmon.store.measured import Measured
from opmon.store.revisions import Revision
from opmon.store.verdicts import Entry
from opmon.types import Estimate

SHOWN = 24
"""Rounds in the small chart of a line."""
_JUDGED = 3
"""So many of the newest estimated rounds are searched for verdicts at once; who has none in them is asked for alone."""


@dataclass(frozen=True)
class PastPoint:
    """What was estimated of one round."""

    round: int
    at: datetime
    model_version: str
    value: float
    low: float
    high: float
    provisional: bool


@dataclass(frozen=True)
class LatestView:
    """The newest final estimate."""

    round: int
    at: datetime
    """When the round's last input came."""
    model: str
    model_version: str
    estimate: Estimate
    failures: int | None
    """How many were found; None for a regression, which has errors and no failures."""
    further: tuple[Measured, ...] = ()
    """What was measured beside it, where the round is one of the newest."""


@dataclass(frozen=True)
class LineView:
    """One monitor in an overview."""

    name: str
    quantity: str
    """The quantity that it estimates, with its unit."""
    status: Standing
    why: str
    reasons: tuple[ReasonView, ...]
    """How each acting rule stands."""
    rounds: int
    queue: QueueView
    latest: LatestView | None
    past: tuple[PastPoint, ...]
    """The estimates of its last rounds, oldest first."""
    needs: tuple[NeedView, ...]
    last_success_at: datetime | None
    """When a cycle last did all that it had to do."""
    next_at: datetime | None
    """When its schedule begins it again: in the past if no service runs; None if none ever did."""


def overview(connection: Connection, watches: Sequence[Watch], now: datetime) -> list[LineView]:
    """A line for each monitor, in the order given."""
    names = [watch.name for watch in watches]
    books = Books.read(connection, names, now)
    numbers, past = glances.last_numbers(connection, names), glances.glances(connection, names, SHOWN)
    finals = _finals(connection, names, numbers, past)
    said = _said(connection, past, finals)
    standings = {watch.name: _stands(connection, watch, finals.get(watch.name), said) for watch in watches}
    alarms = alarms_of(connection, standings)
    return [
        _line(
            watch,
            numbers.get(watch.name, 0),
            past.get(watch.name, []),
            finals.get(watch.name),
            standings[watch.name],
            books.needs_of(watch, standings[watch.name], alarms[watch.name]),
            books,
        )
        for watch in watches
    ]


def _finals(
    connection: Connection, names: Sequence[str], numbers: Mapping[str, int], past: Mapping[str, Sequence[Glance]]
) -> dict[str, Revision]:
    """The newest final estimate of each monitor that has one."""
    newest = {
        name: next((each for each in reversed(past.get(name, ())) if not each.provisional), None) for name in names
    }
    known = revisions.latest_of(connection, [each.round_id for each in newest.values() if each is not None])
    found = {name: known[each.round_id] for name, each in newest.items() if each is not None}
    for name in names:
        if name not in found and numbers.get(name, 0) > SHOWN:  # none of its last rounds has one
            older = revisions.newest_final(connection, name)
            found |= {} if older is None else {name: older}
    return found


def _said(
    connection: Connection, past: Mapping[str, Sequence[Glance]], finals: Mapping[str, Revision]
) -> dict[str, dict[str, Entry]]:
    """What the rules of each monitor said last of its model version, as far as its newest rounds tell."""
    searched = {
        name: [each for each in past.get(name, ()) if each.model == final.model][-_JUDGED:]
        for name, final in finals.items()
    }
    said = glances.said_of(connection, {each.round_id: each.number for own in searched.values() for each in own})
    found: dict[str, dict[str, Entry]] = {}
    for name, own in searched.items():
        by_rule: dict[str, Entry] = {}
        for each in own:
            by_rule |= said.get(each.round_id, {})
        found[name] = by_rule
    return found


def _stands(
    connection: Connection, watch: Watch, final: Revision | None, said: Mapping[str, Mapping[str, Entry]]
) -> StandingView:
    if final is None:
        return NO_ESTIMATE
    return standing_of(connection, watch.name, final.model, watch.acting_rules, said.get(watch.name))


def _line(
    watch: Watch,
    rounds: int,
    past: Sequence[Glance],
    final: Revision | None,
    stands: StandingView,
    needs: tuple[NeedView, ...],
    books: Books,
) -> LineView:
    name = watch.name
    like = final.estimate.quantity if final is not None else watch.quantity
    ended = books.ended.get(name)
    return LineView(
        name=name,
        quantity=watch.quantity.title,
        status=stands.status,
        why=stands.why,
        reasons=stands.reasons,
        rounds=rounds,
        queue=books.queue_of(name),
        latest=None if final is None else _latest(final),
        past=tuple(_point(each) for each in past if each.is_of(like)),
        needs=needs,
        last_success_at=None if ended is None else ended.succeeded_at,
        next_at=books.next_at(watch),
    )


def _latest(final: Revision) -> LatestView:
    estimate = final.estimate
    failures = final.failures if estimate.quantity.share else None
    return LatestView(final.round_number, final.ended_at, *final.model, estimate, failures, final.further)


def _point(each: Glance) -> PastPoint:
    return PastPoint(each.number, each.ended_at, each.model[1], each.value, each.low, each.high, each.provisional)
