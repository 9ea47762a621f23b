"""The rounds as points of the figure of the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from opmon.quantities import Quantity
from opmon.reports.estimate_figure import EstimatePoint
from opmon.stages.rolling import rolling_points
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions, rounds, verdicts
from opmon.store.engine import Connection
from opmon.store.revisions import Revision

SHOWN_ROUNDS = 300
"""The most rounds that a figure shows."""


def estimate_points(work: Toolbox, connection: Connection, quantity: Quantity) -> list[EstimatePoint]:
    """The newest revision of each of the last rounds, with the rolling estimate as of then; oldest first.

    Only those of ``quantity``: what a monitor estimated before its problem or unit was changed has another scale.
    """
    known = revisions.latest_estimates(connection, work.name)
    history = [entry for entry in known if entry.estimate.quantity == quantity]
    alarms = verdicts.alarming_rounds(connection, work.name)
    versions = rounds.versions(connection, work.name)
    rolling = _rolling(work, history, versions)
    return [
        EstimatePoint(
            entry.round_number,
            entry.estimate.value,
            entry.estimate.low,
            entry.estimate.high,
            at=versions[entry.round_number][1],
            provisional=entry.estimate.provisional,
            alarm=entry.round_number in alarms,
            model_version=versions[entry.round_number][0],
            level=entry.estimate.level,
            rolling=rolling.get(entry.round_number),
        )
        for entry in history[-SHOWN_ROUNDS:]
    ]


def _rolling(
    work: Toolbox, history: Sequence[Revision], versions: Mapping[int, tuple[str, datetime]]
) -> dict[int, float]:
    """The rolling estimate as of each round that is shown; every model version has its own."""
    since = history[-SHOWN_ROUNDS:][0].round_number if history else 0
    ends = {number: at for number, (_, at) in versions.items()}
    found: dict[int, float] = {}
    for name in {versions[entry.round_number][0] for entry in history}:
        own = [entry for entry in history if versions[entry.round_number][0] == name]
        points = rolling_points(own, ends, work.settings.rolling, since)
        found |= {point.round_number: point.estimate.value for point in points}
    return found
