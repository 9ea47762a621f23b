"""Checks that labels are kept for as long as anything that is configured may ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from opmon.config.part import at_key
from opmon.durations import show_duration

if TYPE_CHECKING:
    from opmon.config.monitor import MonitorSettings


def check_keeping(monitor: MonitorSettings) -> None:
    """Raise an error where ``keep.rounds`` is shorter than a deadline or a window."""
    kept = monitor.keep.rounds
    if kept is None:
        return
    name, longest = max(_spans(monitor), key=lambda each: each[1])
    if kept < longest:
        raise at_key(
            "keep",
            f"is {show_duration(kept)}, and {name} is {show_duration(longest)}: labels are kept at least as long as "
            f"anything may ask for them. Write {show_duration(longest)} or more, or a shorter {name}",
            "rounds",
        )


def _spans(monitor: MonitorSettings) -> Iterator[tuple[str, timedelta]]:
    """The deadlines and windows of a monitor, by the keys that hold them."""
    yield "labels.max_wait", monitor.labels.max_wait
    yield "round.max_age", monitor.round.max_age
    for name, span in (
        ("labels.wait_for_truth", monitor.labels.wait_for_truth),
        ("rolling.within", monitor.rolling.within),
        ("truth.keep", monitor.truth.keep if monitor.truth is not None and monitor.truth.source is not None else None),
        *((f"rules.{place}.cooldown", rule.cooldown) for place, rule in enumerate(monitor.rules)),
    ):
        if span is not None:
            yield name, span
