"""The model versions of a monitor side by side: what was estimated of each, over its own last rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import NormalDist

from opmon.errors import InputError
from opmon.estimators.changes import Interval, distance
from opmon.estimators.rolling import combine
from opmon.estimators.tally import Tally
from opmon.quantities import Quantity
from opmon.store import revisions, tallies
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.types import Estimate

LOOKED_AT, COMBINED = 300, 20
"""So many of the newest rounds are looked at, and so many of each version are taken together."""


@dataclass(frozen=True)
class VersionView:
    """One model version, over the rounds that it answered itself."""

    model: str
    version: str
    rounds: int
    """Those that are taken together."""
    first: int
    """The numbers of the first and the last of them."""
    last: int
    since: datetime
    until: datetime
    labels: int
    failures: int
    estimate: Estimate


@dataclass(frozen=True)
class DifferenceView:
    """How much higher another version's estimate is; of what is best at 0, how much farther from 0."""

    value: float
    low: float
    high: float

    @property
    def tells(self) -> bool:
        """Whether chance alone is no explanation: zero lies outside of the interval."""
        return not self.low <= 0 <= self.high

    def at(self, wanted: float, level: float) -> DifferenceView:
        """The same with an interval that holds at the level ``wanted``, where that is above its own ``level``.

        Both sides are as much wider as those of a normal distribution are.

        >>> found = DifferenceView(0.1, 0.02, 0.18)
        >>> found.tells, found.at(0.999, 0.95).tells, found.at(0.9, 0.95) == found
        (True, False, True)
        """
        if not 0 < wanted < 1:
            raise InputError(f"alpha is a probability between 0 and 1; got {1 - wanted:g}")
        one, other = (NormalDist().inv_cdf((1 + each) / 2) for each in (wanted, level))
        wider = one / other
        if wider <= 1:
            return self
        low, high = self.value - wider * (self.value - self.low), self.value + wider * (self.high - self.value)
        return DifferenceView(self.value, low, high)


def version_views(
    connection: Connection, monitor: str, quantity: Quantity, since: int | None = None, combined: int = COMBINED
) -> list[VersionView]:
    """The versions of which the newest rounds have a final estimate of ``quantity``, the newest version first.

    ``since`` is the number of the first round that counts; without it, as many are looked at as usual. Of each version
    so many are taken together as ``combined`` says, and those of another level are a view of their own.
    """
    limit = LOOKED_AT if since is None else None
    entries = revisions.latest_estimates(connection, monitor, quantity=quantity, limit=limit, since=since)
    by_model: dict[tuple[tuple[str, str], float], list[Revision]] = {}
    for entry in reversed(entries):
        if not entry.estimate.provisional:
            by_model.setdefault((entry.model, entry.estimate.level), []).append(entry)
    newest = {model: own[:combined] for model, own in by_model.items()}
    known = tallies.read(connection, (each.key for own in newest.values() for each in own))
    return [_view(own, [known.get(each.key) for each in own]) for own in newest.values()]


def _view(own: Sequence[Revision], known: Sequence[Tally | None]) -> VersionView:
    oldest_first = list(reversed(own))
    last, first = own[0], own[-1]
    return VersionView(
        model=last.model[0],
        version=last.model[1],
        rounds=len(own),
        first=first.round_number,
        last=last.round_number,
        since=first.ended_at,
        until=last.ended_at,
        labels=sum(each.labels_seen for each in own),
        failures=sum(each.failures for each in own),
        estimate=combine([each.estimate for each in oldest_first], list(reversed(known))),
    )


def difference(first: Estimate, second: Estimate) -> DifferenceView:
    """By how much the second is higher, or farther from 0 where 0 is best, from two estimates of different inputs.

    Their intervals are joined as Zou and Donner do (Statistics in Medicine 27, 2008, equation 11), which needs no
    symmetry: ``low = d − √((v₂ − l₂)² + (h₁ − v₁)²)``, ``high = d + √((h₂ − v₂)² + (v₁ − l₁)²)``.

    >>> one, two = (Estimate(v, v - 0.03, v + 0.03, 100, 1000, 1.0, "srs") for v in (0.9, 0.8))
    >>> found = difference(one, two)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3), found.tells
    (-0.1, -0.142, -0.058, True)
    """
    one, two = (Interval(each.value, each.low, each.high) for each in (first, second))
    if second.quantity.better == "zero":
        one, two = distance(one), distance(two)
    value = two.value - one.value
    below = math.hypot(two.value - two.low, one.high - one.value)
    above = math.hypot(two.high - two.value, one.value - one.low)
    return DifferenceView(value, value - below, value + above)
