"""What pages and the API show of monitors, read for whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import yaml

from opmon.config import MonitorSettings
from opmon.queries import EventView, LineView, MonitorView, RoundView, TimelinePoint
from opmon.queries.events import newest_events
from opmon.queries.monitors import monitor_view
from opmon.queries.overview import overview
from opmon.queries.rounds import round_views
from opmon.queries.timeline import timeline
from opmon.queries.versions import VersionView, version_views
from opmon.store import rounds
from opmon.store.engine import Connection
from opmon.store.rounds import Round
from opmon.types import Json
from opmon.web.failures import FailuresView, failures_of
from opmon.web.identity import Person
from opmon.web.site import Site

ROUNDS, EVENTS, FAILURES = 20, 10, 8
"""So many of each are shown on the page of a monitor."""
_PRESSING = {"degraded": 0, "unknown": 2, "unwatched": 2, "healthy": 2}


def lines_for(site: Site, person: Person) -> list[LineView]:
    """The monitors that somebody may see: those with an alarm first, then those that need a person, then by name."""
    watches = [settings.watch for settings in site.monitors_of(person)]
    with site.store.read() as connection:
        lines = overview(connection, watches, site.clock())
    return sorted(lines, key=_order)


def _order(line: LineView) -> tuple[int, str]:
    pressing = [need for need in line.needs if need.kind != "labels"]
    return min(_PRESSING[line.status], 1 if pressing else 2), line.name


@dataclass(frozen=True)
class Watched:
    """All that the page of one monitor shows."""

    view: MonitorView
    points: Sequence[TimelinePoint]
    threshold: float | None
    events: Sequence[EventView]
    failures: FailuresView | None
    """Those of the newest round that has a final estimate."""
    latest: Round | None
    """That round."""


def watched(site: Site, settings: MonitorSettings) -> Watched:
    """One monitor."""
    with site.store.read() as connection:
        view = monitor_view(connection, settings.watch, site.clock(), shown=ROUNDS)
        latest = None if view.latest is None else rounds.get(connection, settings.name, view.latest.number)
        return Watched(
            view,
            timeline_of(connection, settings),
            site.thresholds[settings.name],
            newest_events(connection, settings.name, EVENTS),
            None if latest is None else failures_of(connection, settings, latest, FAILURES),
            latest,
        )


def timeline_of(connection: Connection, settings: MonitorSettings) -> list[TimelinePoint]:
    """The last rounds of a monitor that have an estimate."""
    rolling = settings.rolling
    return timeline(connection, settings.name, settings.quantity, rounds=rolling.rounds, within=rolling.within)


def rounds_of(site: Site, settings: MonitorSettings, limit: int, before: int | None) -> list[RoundView]:
    """Rounds of a monitor, newest first."""
    with site.store.read() as connection:
        found = rounds.newest(connection, settings.name, limit, before)
        return round_views(connection, [(settings.watch, found)], site.clock())[0]


def versions_of(site: Site, settings: MonitorSettings) -> list[VersionView]:
    """The versions of which the newest rounds have a final estimate, the newest first."""
    with site.store.read() as connection:
        return version_views(connection, settings.name, settings.quantity)


def configuration_of(settings: MonitorSettings) -> dict[str, Json]:
    """The keys that were given to a monitor; secrets and passwords are hidden."""
    return cast(dict[str, Json], settings.model_dump(mode="json", exclude_unset=True, exclude={"name", "before"}))


def as_yaml(settings: MonitorSettings) -> str:
    """The same as it would stand in the file."""
    told = {"monitors": {settings.name: configuration_of(settings)}}
    text: str = yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=100)
    return text
