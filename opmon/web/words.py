"""What pages say in words of their own, for people who do not know opmon."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Literal

from opmon.quantities import Quantity
from opmon.queries import LineView, NeedView, RollingPoint, RoundView
from opmon.queries.overview import PastPoint
from opmon.queries.standing import Standing
from opmon.reports.drift import ColumnDrift, DriftSummary
from opmon.reports.slices import SliceRow, slice_rows
from opmon.stages.drift import OWN
from opmon.types import Estimate
from opmon.types.drifting import RoundDrift
from opmon.wording import ABSENT, counted, counting, percent

Drifted = Literal["surely", "perhaps", "no"]
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_LONGEST_VALUE = 120
MEANING: dict[Standing, str] = {
    "healthy": "No rule objects.",
    "degraded": "A rule has raised an alarm that has not ended.",
    "unknown": "Too little has been labelled to tell.",
    "unwatched": "No rule watches this monitor: whatever happens, nothing will be raised.",
}
"""What a status means."""
STATES = {
    "opened": "inputs gathered",
    "scored": "scored",
    "drawn": "drawn",
    "labelling": "being labelled",
    "estimated": "estimated",
    "closed": "closed",
    "abandoned": "given up",
}
"""How far a round is."""
WAITS = {
    "labels": "waits for labels",
    "truth": "waits for truth that arrives by itself",
    "inputs": "waits for more inputs",
    "rounds": "waits for the rounds before it",
    "run": "goes on with the next run",
}
"""What a round waits for."""
EVENTS = {
    "opmon.alarm": "Alarm",
    "opmon.recovered": "Recovered",
    "opmon.changed": "Rule changed",
    "opmon.advice": "Advice",
    "opmon.silent": "Silent",
    "opmon.heard": "Heard again",
}
"""The kinds of events."""


DELIVERIES = {
    "pending": "on its way",
    "delivered": "delivered",
    "dead": "given up",
    "withdrawn": "withdrawn",
}
"""What became of an event on its way to an action."""


def brief(why: str) -> str:
    """Why a monitor stands as it does, for a line among many: without the reasoning, which its own page has.

    >>> brief("an alarm stands; floor in round 8: accuracy 70 % (95 % interval 60 % to 80 %); the evidence is 4 times")
    'an alarm stands; floor in round 8: accuracy 70 % (95 % interval 60 % to 80 %)'
    """
    return "; ".join(why.split("; ")[:2])


def begun(text: str) -> str:
    """A sentence as it begins.

    >>> begun("no round yet"), begun("F1 of it")
    ('No round yet', 'F1 of it')
    """
    return text[:1].upper() + text[1:]


def measured_in(quantity: Quantity) -> str:
    """What follows a heading over numbers of a quantity.

    >>> measured_in(Quantity("MAE", "days")), measured_in(Quantity("accuracy", share=True))
    (', in days', '')
    """
    unit = quantity.unit or quantity.scale
    return f", in {unit}" if unit else ""


def moment_of(value: object) -> datetime | None:
    """The moment that a value of an input says, with its time zone; None where it says none.

    >>> moment_of("2026-11-19T07:15:12+00:00").hour, moment_of("2026"), moment_of(7)
    (7, None, None)
    """
    if not isinstance(value, str) or not _MOMENT.match(value):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def value_of(value: object) -> str:
    """A value of an input as a line of a list has it: numbers with the digits that count, and what is missing as such.

    >>> value_of(None), value_of(3183.31340538341), value_of(40.0), value_of(123456), value_of("<b>")
    ('–', '3,183.31', '40', '123456', '<b>')
    >>> value_of(1234567.89), value_of(0.00005)
    ('1,234,568', '0.00005')
    """
    if value is None:
        return ABSENT
    if isinstance(value, float):
        return counting(value, mark=",") if math.isfinite(value) else ABSENT
    return str(value)[:_LONGEST_VALUE]


def interval_of(estimate: Estimate) -> str:
    """An estimate with its bounds."""
    return estimate.quantity.interval(estimate.value, estimate.low, estimate.high)


def bounds_of(estimate: Estimate) -> str:
    """The bounds alone; of what was counted there are none.

    >>> bounds_of(Estimate(0.9, 0.88, 0.92, 100, 1000, 1.0, "srs"))
    '88.0 % to 92.0 %'
    """
    if estimate.counted:
        return "counted"
    _, low, high = estimate.quantity.texts(estimate.value, estimate.low, estimate.high)
    return f"{low} to {high}"


def sure_of(estimate: Estimate) -> str:
    """The bounds and how sure they are; of what was counted, that it was.

    >>> sure_of(Estimate(0.9, 0.88, 0.92, 100, 1000, 1.0, "srs"))
    '88.0 % to 92.0 %, 95 % sure'
    >>> sure_of(Estimate(0.9, 0.9, 0.9, 1000, 1000, 1.0, "census"))
    'counted, not estimated: the truth of all 1,000 inputs is known'
    """
    if estimate.counted:
        return f"counted, not estimated: the truth of all {estimate.frame_size:,} inputs is known"
    return f"{bounds_of(estimate)}, {percent(estimate.level)} sure"


def slices_of(view: RoundView) -> list[SliceRow]:
    """The slices of a round, those first that are worse than all other inputs."""
    return [] if view.estimate is None else slice_rows(view.slices, view.estimate.quantity)


def rolled_slices_of(point: RollingPoint) -> list[SliceRow]:
    """Those of several rounds together."""
    return slice_rows(point.slices, point.estimate.quantity)


def drift_rows(summary: DriftSummary, drift: RoundDrift | None) -> list[tuple[ColumnDrift, Drifted]]:
    """The columns that were compared, those first that drifted, with the same verdict as the sentences over them.

    What is beyond its own limit, and is not when corrected for how many columns were looked at, may be chance.
    """
    if drift is None:
        sure = set(summary.drifted)
    else:
        sure = {f"{'' if part.part == 'inputs' else OWN}{name}" for part in drift.parts for name in part.drifted}
    rows = [(each, _drifted(each, sure)) for each in summary.columns]
    return sorted(rows, key=lambda row: ("surely", "perhaps", "no").index(row[1]))


def _drifted(column: ColumnDrift, sure: Collection[str]) -> Drifted:
    if column.name in sure:
        return "surely"
    return "perhaps" if column.drifted else "no"


def spark_words(points: Sequence[PastPoint], quantity: Quantity) -> str:
    """A small chart as a sentence."""
    if len(points) == 1:
        return f"{quantity.name} of one round: {quantity.text(points[0].value)}"
    first, last = points[0], points[-1]
    return (
        f"{quantity.name} over {counted(len(points), 'round')}: from {quantity.text(first.value)} "
        f"to {quantity.text(last.value)}"
    )


def tally_of(lines: Sequence[LineView]) -> list[tuple[Standing, int]]:
    """How many monitors stand how, worst first."""
    order: tuple[Standing, ...] = ("degraded", "unknown", "unwatched", "healthy")
    return [(status, count) for status in order if (count := sum(line.status == status for line in lines))]


def told_once(needs: Sequence[NeedView]) -> list[tuple[NeedView, int]]:
    """The first need of each kind, but for labels, which have a column; with how many there are of it."""
    kinds = Counter(need.kind for need in needs)
    first = {need.kind: need for need in reversed(needs) if need.kind != "labels"}
    return [(first[kind], times) for kind, times in kinds.items() if kind in first]
