"""The read side: views of monitors, rounds, events and the queue, from indexed queries.

Reading takes no lease, no MLflow and no configuration: what a view depends on is an argument. How a model version
stands is said in one place, :mod:`opmon.queries.standing`.
"""

from opmon.queries.books import QueueView
from opmon.queries.events import DeliveryView, EventView
from opmon.queries.expected import ExpectedPoint, ExpectedView, Foreseen
from opmon.queries.monitors import MonitorView
from opmon.queries.needs import NeedView
from opmon.queries.overview import LatestView, LineView, PastPoint
from opmon.queries.rolling import RollingPoint
from opmon.queries.rounds import RoundView, VerdictView
from opmon.queries.standing import ReasonView, Standing, StandingView
from opmon.queries.timeline import TimelinePoint

__all__ = [
    "DeliveryView",
    "EventView",
    "ExpectedPoint",
    "ExpectedView",
    "Foreseen",
    "LatestView",
    "LineView",
    "MonitorView",
    "NeedView",
    "PastPoint",
    "QueueView",
    "ReasonView",
    "RollingPoint",
    "RoundView",
    "Standing",
    "StandingView",
    "TimelinePoint",
    "VerdictView",
]
