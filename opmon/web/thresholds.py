"""The lines that charts draw."""

from __future__ import annotations

from collections.abc import Iterator

from opmon.config import MonitorSettings


def threshold_of(settings: MonitorSettings) -> float | None:
    """The line to draw into charts: that of the first rule on the main measure which has one."""
    main = settings.quantity.name
    of_main = (rule.plugin for rule in settings.rules if settings.watched(rule.plugin.watches()).key == main)
    lines: Iterator[float | None] = (rule.line() for rule in of_main)
    return next((line for line in lines if line is not None), None)
