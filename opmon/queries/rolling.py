"""The rolling estimate: the last rounds of one model version, as one figure with an interval of its own.

A window is the last ``rounds``, those ``within`` a time, or the narrower of both; only the rounds in it are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from opmon import quantities
from opmon.estimators.measured import BY_PARTS
from opmon.estimators.rolling import combine, window
from opmon.estimators.tally import Tally
from opmon.problems import PROBLEMS
from opmon.quantities import Quantity
from opmon.scales import Scale
from opmon.store import revisions, rolled, tallies
from opmon.store.engine import Connection
from opmon.store.measured import Measured
from opmon.store.revisions import Revision
from opmon.store.rolled import Main
from opmon.types import Estimate
from opmon.types.slicing import Sliced

_SCALES: tuple[Scale | None, ...] = (None, "pass_fail")
_USUAL = frozenset(quantities.of(problem, None, scale).name for problem in PROBLEMS for scale in _SCALES)


@dataclass(frozen=True)
class RollingPoint:
    """The rolling estimate as of one round, and the rounds it is made of."""

    round_number: int
    rounds: tuple[int, ...]
    estimate: Estimate
    measures: tuple[Measured, ...] = ()
    """The measures beside it, from the same draws; read for the newest round alone."""
    slices: tuple[Sliced, ...] = ()
    """The slices of these rounds, those first that are worse than all other inputs."""


@dataclass(frozen=True)
class Window:
    """The final estimates that count as of one round, that round's own among them."""

    entry: Revision
    """The round's own."""
    kept: tuple[Revision, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(each.round_number for each in self.kept)

    @property
    def changed(self) -> int:
        """The key of the newest estimate in it."""
        return max(each.key for each in self.kept)


def rolling_points(
    history: Sequence[Revision], *, rounds: int | None, within: timedelta | None, since: int = 0
) -> list[RollingPoint]:
    """The rolling estimates as of each round from ``since`` on, from the rounds' intervals; oldest first.

    ``history`` holds the newest revisions of one model version's rounds. Provisional ones do not count, and what is
    combined has one level.
    """
    return [_point(each, {}) for each in _windows(history, rounds=rounds, within=within, since=since)]


def rolling_as_of(
    connection: Connection,
    monitor: str,
    entry: Revision,
    *,
    rounds: int | None,
    within: timedelta | None,
    as_of: int | None = None,
) -> RollingPoint | None:
    """The rolling estimate as of one round; None where the round's own is not final.

    ``as_of`` is the key of an estimate after which none counts.
    """
    around = revisions.finals_around(connection, monitor, entry, count=rounds, within=within, as_of=as_of, later=False)
    until = [each for each in around if each.round_number <= entry.round_number]
    windows = _windows(until, rounds=rounds, within=within, since=entry.round_number)
    points = joined(connection, monitor, windows, as_of)
    return points[0] if points else None


def rolling_whole(
    connection: Connection, monitor: str, entry: Revision, *, rounds: int | None, within: timedelta | None
) -> RollingPoint | None:
    """The rolling estimate as of one round, with the further measures and the slices of its rounds."""
    point = rolling_as_of(connection, monitor, entry, rounds=rounds, within=within)
    beside = None if point is None else rolled.newest(connection, monitor, entry.round_number)
    if point is None or beside is None:
        return point
    return replace(point, measures=beside.measures, slices=beside.slices)


def windows_with(
    connection: Connection, monitor: str, entry: Revision, *, rounds: int | None, within: timedelta | None
) -> list[Window]:
    """The windows that a round is part of; oldest first."""
    around = revisions.finals_around(connection, monitor, entry, count=rounds, within=within)
    windows = _windows(around, rounds=rounds, within=within, since=entry.round_number)
    return [each for each in windows if entry.round_number in each.numbers]


def joined(
    connection: Connection, monitor: str, windows: Iterable[Window], as_of: int | None = None
) -> list[RollingPoint]:
    """The rolling estimate of each window, from the draws of all its rounds where these are known.

    ``as_of`` is the key of an estimate after which none counts.
    """
    windows = list(windows)
    known = tallies.read(connection, (each.key for one in windows for each in one.kept))
    pooled = _pooled(connection, monitor, windows, as_of)
    return [_point(each, known, pooled.get(each.entry.round_number)) for each in windows]


def rolling_values(
    connection: Connection,
    monitor: str,
    history: Sequence[Revision],
    *,
    rounds: int | None,
    within: timedelta | None,
    since: int,
) -> list[RollingPoint]:
    """As :func:`rolling_points`, with the values of :func:`joined`: its intervals are wider, and draws are looked at
    only where they make the value too."""
    windows = list(_windows(history, rounds=rounds, within=within, since=since))
    by_parts = any(each.estimate.method.endswith(BY_PARTS) for one in windows for each in one.kept)
    known = tallies.read(connection, (each.key for one in windows for each in one.kept)) if by_parts else {}
    pooled = _pooled(connection, monitor, windows, None)
    return [_point(each, known, pooled.get(each.entry.round_number)) for each in windows]


def _windows(
    history: Sequence[Revision], *, rounds: int | None, within: timedelta | None, since: int
) -> Iterator[Window]:
    alike: dict[tuple[float, Quantity], list[Revision]] = defaultdict(list)
    for newest in history:
        if newest.estimate.provisional:
            continue
        like = alike[newest.estimate.level, newest.estimate.quantity]
        like.append(newest)
        if newest.round_number >= since:
            moments = None if within is None else [entry.ended_at for entry in like]
            kept = window(len(like), rounds=rounds, ends=moments, within=within)
            yield Window(newest, tuple(like[i] for i in kept))


def _pooled(connection: Connection, monitor: str, windows: Sequence[Window], as_of: int | None) -> Mapping[int, Main]:
    """The main measure from the draws of all rounds as of each, where it was made so; of a usual one it never is."""
    numbers = [each.entry.round_number for each in windows]
    if not numbers or windows[-1].entry.estimate.quantity.name in _USUAL:
        return {}
    return rolled.mains(connection, monitor, min(numbers), max(numbers), as_of)


def _point(of: Window, known: Mapping[int, Tally], pooled: Main | None = None) -> RollingPoint:
    if pooled is not None and set(pooled[0]) <= set(of.numbers) and _like(pooled[1], of.entry.estimate):
        return RollingPoint(of.entry.round_number, *pooled)
    found = combine([each.estimate for each in of.kept], [known.get(each.key) for each in of.kept])
    return RollingPoint(of.entry.round_number, of.numbers, found)


def _like(one: Estimate, other: Estimate) -> bool:
    return one.quantity == other.quantity and one.level == other.level
