"""The rounds as points of the figure of the estimates."""

from __future__ import annotations

from opmon.quantities import Quantity
from opmon.queries.timeline import timeline
from opmon.reports.estimate_figure import EstimatePoint
from opmon.stages.toolbox import Toolbox
from opmon.store.engine import Connection


def estimate_points(work: Toolbox, connection: Connection, quantity: Quantity) -> list[EstimatePoint]:
    """The last rounds, with the rolling estimate as of each; oldest first."""
    window = work.settings.rolling
    points = timeline(connection, work.name, quantity, rounds=window.rounds, within=window.within)
    return [
        EstimatePoint(
            point.round,
            point.estimate.value,
            point.estimate.low,
            point.estimate.high,
            at=point.at,
            provisional=point.estimate.provisional,
            alarm=point.alarm,
            model_version=point.model_version,
            level=point.estimate.level,
            rolling=point.rolling,
        )
        for point in points
    ]
