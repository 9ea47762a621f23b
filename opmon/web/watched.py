"""What pages and the API show of monitors, read for whoever asks."""

from __future__ import annotations

from collections.abc import Sequence

from opmon.config import MonitorSettings
from opmon.queries import LineView
from opmon.queries.overview import overview
from opmon.web.identity import Person
from opmon.web.site import Site

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


def threshold_of(settings: MonitorSettings) -> float | None:
    """The line to draw into charts: that of the first rule which has one."""
    lines: Sequence[float | None] = [rule.plugin.line() for rule in settings.rules]
    return next((line for line in lines if line is not None), None)
