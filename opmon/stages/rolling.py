"""The rolling estimates, told to MLflow.

Each is told at the step of the round whose window it is, as of the moment when that round's estimate became final. A
label that came later changes the windows of later rounds too: what they become is told beside it, under a key of its
own. What is told follows from the database alone, so that telling twice is telling once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from opmon.abc import Point
from opmon.queries.rolling import RollingPoint, joined, rolling_as_of, windows_with
from opmon.reports.slices import rolling_slice_metrics
from opmon.reports.timeline import measure_metrics, rolling_metrics
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions, rolled
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rolled import Rolled

MOST_POINTS = 400
"""So many numbers of the slices and further measures of several rounds go to MLflow."""


def rolling_to_tell(work: Toolbox, revision: Revision) -> list[Point]:
    """What MLflow's timeline is told: the rolling estimates that the round of this revision is part of."""
    with work.store.read() as connection:
        told = _to_tell(connection, work, revision)
        beside = rolled.of(connection, [revision.key]).get(revision.key)
    points = [
        Point(key, value, point.round_number, at)
        for point, at, revised in told
        for key, value in rolling_metrics(point.estimate, revised=revised).items()
    ]
    return points if beside is None else [*points, *_beside(revision, beside, told)]


def _beside(revision: Revision, beside: Rolled, told: Sequence[tuple[RollingPoint, datetime, bool]]) -> list[Point]:
    """The further measures and the slices of the newest rounds, where the rolling estimate of these is told too."""
    of = next(((at, revised) for point, at, revised in reversed(told) if point.round_number == beside.as_of), None)
    if of is None:
        return []
    at, revised = of
    metrics = measure_metrics(beside.measures, "_rolling_revised" if revised else "_rolling")
    metrics |= rolling_slice_metrics(beside.slices, revision.estimate.quantity, revised=revised)
    return [Point(key, value, beside.as_of, at) for key, value in metrics.items()][:MOST_POINTS]


def _to_tell(connection: Connection, work: Toolbox, revision: Revision) -> list[tuple[RollingPoint, datetime, bool]]:
    """The round's own point, and what became of each point that it is part of; with moments, and whether revised."""
    limits = work.settings.rolling
    windows = windows_with(connection, work.name, revision, rounds=limits.rounds, within=limits.within)
    if not windows:
        return []
    first, last = windows[0].entry.round_number, windows[-1].entry.round_number
    became_final = revisions.became_final(connection, work.name, first, last)
    told = []
    for window, point in zip(windows, joined(connection, work.name, windows), strict=True):
        own, final, at = point.round_number == first, became_final[point.round_number], window.entry.ended_at
        late = window.changed - final
        then = _then(connection, work, window.entry, final) if late > 0 else point
        if own and then is not None:
            told.append((then, at, False))
        if then is None or point.estimate != then.estimate:
            told.append((point, at + timedelta(milliseconds=late), True))
    return told


def _then(connection: Connection, work: Toolbox, entry: Revision, as_of: int) -> RollingPoint | None:
    """The rolling estimate as of a round, from what was known when that round's own estimate became final."""
    limits = work.settings.rolling
    return rolling_as_of(connection, work.name, entry, rounds=limits.rounds, within=limits.within, as_of=as_of)
