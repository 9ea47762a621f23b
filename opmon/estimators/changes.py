"""By how much a round is worse than others before it, as a whole and slice by slice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev

from opmon.quantities import Better

ERROR = 0.05
"""The probability of calling any slice worse than before that is not, over all slices of a round."""


@dataclass(frozen=True)
class Interval:
    """A value with the bounds of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """By how much something is worse than before: below 0 where it is better."""

    worse_by: float
    low: float
    high: float
    now: float
    before: float

    @property
    def is_loss(self) -> bool:
        """Whether it is surely worse."""
        return self.low > 0

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of it but its value."""
        return math.isinf(self.low) and math.isinf(self.high)


def change(
    now: Interval, before: Sequence[Interval], better: Better, scale: float = 1.0, chance: float | None = None
) -> Change | None:
    """How much worse ``now`` is than the mean of some independent estimates ``before``; None without these.

    For ``better`` the higher, ``D = m − v`` with ``m`` the mean of the ``k`` values before, and

    ``D − sqrt((u − v)² + Σ ((m_i − l_i)/k)²)``,  ``D + sqrt((v − l)² + Σ ((u_i − m_i)/k)²)``

    with ``l`` and ``u`` the bounds of each (the method of variance estimates recovery: Zou and Donner, Statistics in
    Medicine 27, 2008, equation 4); the other way round where the lower is better. What is best at 0 is compared by its
    distance from 0. It has the level of the intervals; ``scale`` makes all of them wider, for another level. The rounds
    before are taken as a fixed set: how much rounds differ from each other by themselves is not in it.

    With ``chance``, the error that each bound may have, it is where something was counted: see :func:`_by_rounds`.
    """
    if not before or better == "neither":
        return None
    others = 0.0 if chance is None else _by_rounds(now, before, chance)
    if better == "zero":
        now, before, better = distance(now), [distance(each) for each in before], "lower"
    count = len(before)
    mean = sum(each.value for each in before) / count
    low, high = (
        math.hypot(*(scale * (each.value - each.low) / count for each in before)),
        math.hypot(*(scale * (each.high - each.value) / count for each in before)),
    )
    down, up = scale * (now.value - now.low), scale * (now.high - now.value)
    if better == "higher":
        by, less, more = mean - now.value, math.hypot(up, low, others), math.hypot(down, high, others)
    else:
        by, less, more = now.value - mean, math.hypot(down, high, others), math.hypot(up, low, others)
    return Change(by, by - less, by + more, now.value, mean)


def _by_rounds(now: Interval, before: Sequence[Interval], error: float) -> float:
    """By how much ``now`` may differ from the mean of ``before`` by chance, with a bound that errs so often.

    A value without an interval was counted, and that inputs came by chance is not in it. How much that makes is then
    taken from the values before: for the next of ``k`` normal ones with standard deviation ``s`` it is
    ``t(k − 1) s sqrt(1 + 1/k)``, and unbounded for one alone. 0 where all of them have an interval.
    """
    if not any(each.low == each.high for each in (now, *before)):
        return 0.0
    count = len(before)
    if count < 2:
        return math.inf
    from scipy.special import stdtrit

    values = [each.value for each in before]
    return float(stdtrit(count - 1, 1 - error)) * stdev(values) * math.sqrt(1 + 1 / count)


def distance(of: Interval) -> Interval:
    """How far from 0 it is."""
    nearest = 0.0 if of.low <= 0 <= of.high else min(abs(of.low), abs(of.high))
    return Interval(abs(of.value), nearest, max(abs(of.low), abs(of.high)))


def worse_slices(
    pairs: Mapping[str, tuple[Interval, Sequence[Interval]]], better: Better, level: float, error: float = ERROR
) -> dict[str, Change]:
    """The slices that are worse than before, each with a bound that knows how many were looked at.

    By Holm's procedure (Scandinavian Journal of Statistics 6, 1979): all of ``m`` at ``error/m``, and where ``k`` are
    rejected the others at ``error/(m − k)``. The intervals have the ``level`` of the round; for another one their
    lengths are taken as proportional to the normal quantile, which is rough for slices of few answers.
    """
    from scipy.special import ndtri

    left, found = dict(pairs), dict[str, Change]()
    while left:
        each_error = error / len(left)
        scale = float(ndtri(1 - each_error) / ndtri((1 + level) / 2))
        changes = {name: change(now, before, better, scale, each_error) for name, (now, before) in left.items()}
        rejected = {name: each for name, each in changes.items() if each is not None and each.is_loss}
        if not rejected:
            return found
        found |= rejected
        left = {name: pair for name, pair in left.items() if name not in rejected}
    return found
