"""A monitor over some time, for a report: how it stands, its rounds, what they cost, what came of its alarms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from opmon.errors import NotFoundError
from opmon.estimators.tally import Tally
from opmon.queries.events import EventView, newest_events
from opmon.queries.monitors import MonitorView, monitor_view
from opmon.queries.planning import Known
from opmon.queries.rounds import RoundView, round_views
from opmon.queries.savings import LabelsView, goes_by_tallies, labels_of
from opmon.queries.timeline import TimelinePoint, timeline
from opmon.queries.versions import VersionView, version_views
from opmon.queries.watch import Watch
from opmon.store import outbox, revisions, rounds, tallies
from opmon.store.engine import Connection
from opmon.store.rounds import Round

_EVENTS = 1000
"""So many of the newest events are looked through."""
_ENDS = {
    outbox.ALARM: {outbox.RECOVERED: "recovered", outbox.CHANGED: "changed"},
    outbox.SILENT: {outbox.HEARD: "recovered"},
}
"""By the type of what is raised, the types that end it."""

Outcome = Literal["recovered", "changed", "stands", "over"]


@dataclass(frozen=True)
class RaisedView:
    """An alarm, or that the monitor fell silent, and what came of it."""

    event: EventView
    outcome: Outcome
    """``recovered``; ``changed``: its rule was changed; ``stands``; ``over``: its version is watched no more."""
    ended_at: datetime | None
    """When it recovered, or its rule was changed."""


@dataclass(frozen=True)
class PeriodView:
    """All that a report tells."""

    since: datetime
    until: datetime
    now: MonitorView
    """How it stands at the end of the time, with the newest round that has a final estimate."""
    threshold: float | None
    rounds: tuple[RoundView, ...]
    """Those of the time, newest first."""
    points: tuple[TimelinePoint, ...]
    """Their estimates, oldest first."""
    labels: LabelsView
    versions: tuple[VersionView, ...]
    """The model versions of these rounds, the newest first."""
    raised: tuple[RaisedView, ...]
    """What was raised in the time or stood at its beginning, newest first."""
    quiet: str = ""
    """That no round ended in the time, in a sentence; empty where one did."""


def period_view(
    connection: Connection, watch: Watch, known: Known, threshold: float | None, since: datetime, now: datetime
) -> PeriodView:
    """The monitor from ``since`` until ``now``, also where no round ended in that time; an error where it has none."""
    own = rounds.since(connection, watch.name, since)
    quiet = "" if own else _quiet(connection, watch.name)
    views = round_views(connection, [(watch, own)], now)[0]
    stands = monitor_view(connection, watch, now, shown=1)
    points = timeline(
        connection,
        watch.name,
        watch.quantity,
        rounds=watch.rolling_rounds,
        within=watch.rolling_within,
        shown=len(own),
    )
    first = own[-1].number if own else math.inf
    versions = version_views(connection, watch.name, watch.quantity, since=own[-1].number) if own else []
    return PeriodView(
        since=since,
        until=now,
        now=stands,
        threshold=threshold,
        rounds=tuple(views),
        points=tuple(point for point in points if point.round >= first),
        labels=labels_of(views, sum(round_.gold_spoken for round_ in own), known, _tallies(connection, own, known)),
        versions=tuple(versions),
        raised=_raised(newest_events(connection, watch.name, _EVENTS), stands, since),
        quiet=quiet,
    )


def _tallies(connection: Connection, own: Sequence[Round], known: Known) -> dict[int, Tally]:
    """What the draws of these rounds tell, by number, where the labels that are saved go by it."""
    if not goes_by_tallies(known):
        return {}
    newest = revisions.latest_of(connection, [round_.id for round_ in own])
    read = tallies.read(connection, [each.key for each in newest.values()])
    return {each.round_number: read[each.key] for each in newest.values() if each.key in read}


def _quiet(connection: Connection, monitor: str) -> str:
    newest = rounds.newest(connection, monitor, 1)
    if not newest:
        raise NotFoundError(f"the monitor {monitor!r} has opened no round yet: opmon status tells what it waits for")
    last = newest[0].ends_at or newest[0].opened_at
    return f"No round ended in this time. The newest, round {newest[0].number}, is of {last:%d %b %Y}."


def _raised(newest_first: Sequence[EventView], stands: MonitorView, since: datetime) -> tuple[RaisedView, ...]:
    found, ended = [], dict[tuple[str, str], tuple[str, datetime]]()
    standing = {reason.rule for reason in stands.reasons if reason.state == "alarm"}
    standing |= {outbox.SILENCE} if any(need.kind == "silent" for need in stands.needs) else set()
    for event in newest_first:
        for kind, ends in _ENDS.items():
            if event.type in ends:
                ended[event.rule, kind] = (ends[event.type], event.created_at)
        if event.type in _ENDS:
            found.append(_outcome(event, ended.get((event.rule, event.type)), event.rule in standing))
    return tuple(each for each in found if each.event.created_at >= since or _lasted_until(each, since))


def _outcome(event: EventView, end: tuple[str, datetime] | None, stands: bool) -> RaisedView:
    if end is None:
        return RaisedView(event, "stands" if stands else "over", None)
    return RaisedView(event, "changed" if end[0] == "changed" else "recovered", end[1])


def _lasted_until(each: RaisedView, since: datetime) -> bool:
    return each.outcome == "stands" if each.ended_at is None else each.ended_at >= since
