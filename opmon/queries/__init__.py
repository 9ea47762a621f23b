"""What opmon knows, for whoever shows it: views of monitors, rounds, events and the queue, from indexed queries.

Reading takes no lease, no MLflow and no configuration: what a view depends on is an argument. How a model version
stands is said in one place, :mod:`opmon.queries.standing`.
"""

from opmon.queries.events import DeliveryView, EventView
from opmon.queries.monitors import MonitorView, QueueView, RoundView, VerdictView
from opmon.queries.rolling import RollingPoint
from opmon.queries.standing import Standing
from opmon.queries.timeline import TimelinePoint

__all__ = [
    "DeliveryView",
    "EventView",
    "MonitorView",
    "QueueView",
    "RollingPoint",
    "RoundView",
    "Standing",
    "TimelinePoint",
    "VerdictView",
]
