"""The rolling estimate: the last rounds of one model version, as one figure with an interval of its own.

It is told to MLflow at the step of each round whose window it is, once that round's estimate is final. A late label
changes the windows of later rounds too: those are told again, under a later moment. What is told follows from the
database alone, so that telling twice is telling once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from opmon.config import MonitorSettings, RollingSettings
from opmon.estimators.rolling import combine, window
from opmon.quantities import Quantity
from opmon.reports.timeline import rolling_metrics
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions, rounds
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.types import Estimate, ModelVersion


@dataclass(frozen=True)
class RollingPoint:
    """The rolling estimate as of one round, and the rounds it is made of."""

    round_number: int
    rounds: tuple[int, ...]
    estimate: Estimate


def rolling_points(
    history: Sequence[Revision],
    ends: Mapping[int, datetime],
    settings: RollingSettings,
    since: int = 0,
) -> list[RollingPoint]:
    """The rolling estimates as of each round from ``since`` on; oldest first.

    ``history`` holds the newest revisions of one model version's rounds, ``ends`` when rounds ended. Provisional ones
    do not count, and what is combined has one level.
    """
    points = []
    alike: dict[tuple[float, Quantity], list[Revision]] = defaultdict(list)
    for newest in history:
        if newest.estimate.provisional:
            continue
        like = alike[newest.estimate.level, newest.estimate.quantity]
        like.append(newest)
        if newest.round_number < since:
            continue
        moments = None if settings.within is None else [ends[entry.round_number] for entry in like]
        kept = [like[i] for i in window(len(like), rounds=settings.rounds, ends=moments, within=settings.within)]
        numbers = tuple(entry.round_number for entry in kept)
        points.append(RollingPoint(newest.round_number, numbers, combine([entry.estimate for entry in kept])))
    return points


def log_rolling(work: Toolbox, round_: Round, model: ModelVersion | None) -> None:
    """Tell MLflow the rolling estimates that this round is part of."""
    with work.store.read() as connection:
        history = revisions.latest_estimates(connection, work.name, model=round_.model)
        ends = {number: at for number, (_, at) in rounds.versions(connection, work.name).items()}
        finals = revisions.finals(connection, work.name, round_.model)
    for point in rolling_points(history, ends, work.settings.rolling, since=round_.number):
        if round_.number in point.rounds:
            at = ends[point.round_number] + timedelta(milliseconds=_changes(finals, point.round_number))
            metrics = rolling_metrics(point.estimate)
            work.registry.log_metrics(round_.timeline_run_id or "", metrics, point.round_number, at, model=model)


def newest_rolling(connection: Connection, settings: MonitorSettings, newest: Round) -> RollingPoint | None:
    """The rolling estimate as of the newest round that has a final estimate."""
    history = revisions.latest_estimates(connection, settings.name, model=newest.model)
    ends = {number: at for number, (_, at) in rounds.versions(connection, settings.name).items()}
    points = rolling_points(history, ends, settings.rolling, since=newest.number)
    return points[-1] if points else None


def _changes(finals: Sequence[tuple[int, int]], number: int) -> int:
    """How often what a round's window may hold has changed since the round's own first final estimate."""
    first = next(key for of, key in finals if of == number)
    return sum(of <= number and key > first for of, key in finals)
