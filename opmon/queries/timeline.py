"""The last rounds of a monitor as points in time, with what was estimated and the rolling estimate as of then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from opmon.quantities import Quantity
from opmon.queries.rolling import rolling_values
from opmon.store import revisions, verdicts
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.types import Estimate

SHOWN_ROUNDS = 100
"""The most rounds that a timeline shows."""


@dataclass(frozen=True)
class TimelinePoint:
    """One round on the timeline."""

    round: int
    estimate: Estimate
    at: datetime
    """When the round's last input came."""
    model_version: str
    alarm: bool
    rolling: float | None
    """The estimate over the last rounds, as of this one; None while the round's own is provisional."""


def timeline(
    connection: Connection,
    monitor: str,
    quantity: Quantity,
    *,
    rounds: int | None,
    within: timedelta | None,
    shown: int = SHOWN_ROUNDS,
) -> list[TimelinePoint]:
    """The newest revision of each of the last rounds, oldest first; the window is that of the rolling estimate.

    Only those of ``quantity``: what a monitor estimated before its problem or unit was changed has another scale.
    """
    entries = revisions.latest_estimates(connection, monitor, quantity=quantity, limit=shown)
    if not entries:
        return []
    alarms = verdicts.alarming_rounds(connection, monitor, since=entries[0].round_number)
    rolling = _rolling(connection, monitor, entries, rounds, within)
    return [
        TimelinePoint(
            entry.round_number,
            entry.estimate,
            entry.ended_at,
            entry.model[1],
            entry.round_number in alarms,
            rolling.get(entry.round_number),
        )
        for entry in entries
    ]


def _rolling(
    connection: Connection, monitor: str, entries: Sequence[Revision], rounds: int | None, within: timedelta | None
) -> dict[int, float]:
    """The rolling estimate as of each round; every model version and level has its own."""
    alike: dict[tuple[tuple[str, str], float], list[Revision]] = defaultdict(list)
    for entry in entries:
        if not entry.estimate.provisional:
            alike[entry.model, entry.estimate.level].append(entry)
    found: dict[int, float] = {}
    for own in alike.values():
        around = revisions.finals_around(connection, monitor, own[0], count=rounds, within=within)
        before = [entry for entry in around if entry.round_number < own[0].round_number]
        since = own[0].round_number
        points = rolling_values(connection, monitor, [*before, *own], rounds=rounds, within=within, since=since)
        found |= {point.round_number: point.estimate.value for point in points}
    return found
