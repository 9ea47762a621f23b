"""The rolling estimate: the last rounds of one model version, as one figure with an interval of its own.

It is told to MLflow at the step of each round whose window it is, as of the moment when that round's estimate became
final. A label that came later changes the windows of later rounds too: what they become is told beside it, under a key
of its own. What is told follows from the database alone, so that telling twice is telling once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from opmon.config import MonitorSettings, RollingSettings
from opmon.estimators.rolling import combine, window
from opmon.estimators.tally import Tally
from opmon.quantities import Quantity
from opmon.reports.timeline import rolling_metrics
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions, rounds, tallies
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
    """The rolling estimates as of each round from ``since`` on, from the rounds' intervals; oldest first.

    ``history`` holds the newest revisions of one model version's rounds, ``ends`` when rounds ended. Provisional ones
    do not count, and what is combined has one level.
    """
    return [_point(kept, {}) for kept in _windows(history, ends, settings, since)]


def joined_points(
    connection: Connection,
    history: Sequence[Revision],
    ends: Mapping[int, datetime],
    settings: RollingSettings,
    since: int,
) -> list[RollingPoint]:
    """The same for windows that hold the round ``since``, from the draws of all their rounds where these are known."""
    windows = [kept for kept in _windows(history, ends, settings, since) if since in (e.round_number for e in kept)]
    known = tallies.read(connection, (entry.key for kept in windows for entry in kept))
    return [_point(kept, known) for kept in windows]


def _windows(
    history: Sequence[Revision], ends: Mapping[int, datetime], settings: RollingSettings, since: int
) -> Iterator[list[Revision]]:
    """The revisions that count as of each round from ``since`` on; the last one is the round's own."""
    alike: dict[tuple[float, Quantity], list[Revision]] = defaultdict(list)
    for newest in history:
        if newest.estimate.provisional:
            continue
        like = alike[newest.estimate.level, newest.estimate.quantity]
        like.append(newest)
        if newest.round_number >= since:
            moments = None if settings.within is None else [ends[entry.round_number] for entry in like]
            kept = window(len(like), rounds=settings.rounds, ends=moments, within=settings.within)
            yield [like[i] for i in kept]


def _point(kept: Sequence[Revision], known: Mapping[int, Tally]) -> RollingPoint:
    numbers = tuple(entry.round_number for entry in kept)
    found = combine([entry.estimate for entry in kept], [known.get(entry.key) for entry in kept])
    return RollingPoint(numbers[-1], numbers, found)


def log_rolling(work: Toolbox, round_: Round, model: ModelVersion | None) -> None:
    """Tell MLflow the rolling estimates that this round is part of."""
    with work.store.read() as connection:
        told = _to_tell(connection, work, round_)
    for point, at, revised in told:
        metrics = rolling_metrics(point.estimate, revised=revised)
        work.registry.log_metrics(round_.timeline_run_id or "", metrics, point.round_number, at, model=model)


def _to_tell(connection: Connection, work: Toolbox, round_: Round) -> list[tuple[RollingPoint, datetime, bool]]:
    """The round's own point, and what became of each point that it is part of; with moments, and whether revised."""
    history = revisions.latest_estimates(connection, work.name, model=round_.model)
    ends = {number: at for number, (_, at) in rounds.versions(connection, work.name).items()}
    finals = revisions.finals(connection, work.name, round_.model)
    told = []
    for point in joined_points(connection, history, ends, work.settings.rolling, since=round_.number):
        own, changes = point.round_number == round_.number, _changes(finals, point.round_number)
        if not (own or changes):
            continue
        first = point if not changes else _as_it_became_final(connection, work, round_, point, finals, ends)
        at = ends[point.round_number]
        if own:
            told.append((first, at, False))
        if point.estimate != first.estimate:
            told.append((point, at + timedelta(milliseconds=changes), True))
    return told


def _as_it_became_final(
    connection: Connection,
    work: Toolbox,
    round_: Round,
    point: RollingPoint,
    finals: Sequence[tuple[int, int]],
    ends: Mapping[int, datetime],
) -> RollingPoint:
    """The rolling estimate as of a round, from what was known when that round's own estimate became final."""
    moment = next(key for of, key in finals if of == point.round_number)
    known = revisions.latest_estimates(connection, work.name, model=round_.model, as_of=moment)
    known = [entry for entry in known if entry.round_number <= point.round_number]
    return joined_points(connection, known, ends, work.settings.rolling, since=point.round_number)[-1]


def newest_rolling(connection: Connection, settings: MonitorSettings, newest: Round) -> RollingPoint | None:
    """The rolling estimate as of the newest round that has a final estimate."""
    history = revisions.latest_estimates(connection, settings.name, model=newest.model)
    ends = {number: at for number, (_, at) in rounds.versions(connection, settings.name).items()}
    points = joined_points(connection, history, ends, settings.rolling, since=newest.number)
    return points[-1] if points else None


def _changes(finals: Sequence[tuple[int, int]], number: int) -> int:
    """How often what a round's window may hold has changed since the round's own first final estimate."""
    first = next(key for of, key in finals if of == number)
    return sum(of <= number and key > first for of, key in finals)
