"""What metrics tell of the monitors, from a few queries for all of them: every process reads the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from opmon.queries.overview import LineView, overview
from opmon.queries.pulse import Pulse, pulses
from opmon.queries.watch import Watch
from opmon.store import outbox, tallied
from opmon.store.engine import Connection
from opmon.store.tallied import Totals


@dataclass(frozen=True)
class Gauges:
    """All numbers of one monitor."""

    line: LineView
    pulse: Pulse
    totals: Totals
    waiting: int
    """Deliveries that wait for their time or their turn."""
    failing: int
    """Deliveries that were tried in vain several times, and are tried again."""
    dead: int
    """Deliveries that no retry can help."""


def gauges(connection: Connection, watches: Sequence[Watch], now: datetime) -> list[Gauges]:
    """The numbers of each monitor, in the order given."""
    names = [watch.name for watch in watches]
    totals = tallied.totals(connection, names)
    states: Mapping[str, Mapping[str, int]] = outbox.states(connection, names)
    return [
        Gauges(
            line,
            pulse,
            totals.get(line.name, Totals()),
            states.get(line.name, {}).get("pending", 0),
            states.get(line.name, {}).get("failing", 0),
            states.get(line.name, {}).get("dead", 0),
        )
        for line, pulse in zip(overview(connection, watches, now), pulses(connection, watches, now), strict=True)
    ]
