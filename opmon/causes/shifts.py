"""In what inputs since a moment differ most from those before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.causes.conditions import Condition
from opmon.causes.features import Feature, Measurements
from opmon.causes.onsets import Moments
from opmon.types import Floats

Members = NDArray[np.bool_]

ERROR = 0.01
"""In so few looks a shift is told where there is none, of all conditions that are looked at."""
BACK = 1.96
"""A round before belongs to what is shifted where it is by so many standard errors."""
CLOCK = 0.95
"""What grows with time like this is a clock or a counter, and nothing that inputs differ in."""


@dataclass(frozen=True)
class Shift:
    """A condition that holds for more of the inputs since a moment than of those before."""

    words: str
    feature: int
    condition: int
    since: float
    """The share of the inputs since then that it holds for."""
    before: float


def shift_of(conditions: Sequence[Condition], since: Members, even: Floats) -> Shift | None:
    """The condition with the largest standardised difference of shares, ``(q₁ − q₀) / √(q (1 − q))``; None where chance
    alone would give as much. Weights of each round's own design tell shares of all inputs, not of those that were drawn
    because they look suspicious."""
    from scipy.special import ndtri

    if not conditions or not since.any() or since.all():
        return None
    columns = np.stack([each.members for each in conditions], axis=1).astype(np.float64)
    later, earlier = even * since, even * ~since
    shares = later @ columns / later.sum(), earlier @ columns / earlier.sum()
    both = even @ columns / even.sum()
    unit = np.sqrt(np.maximum(both * (1 - both), 1e-9))
    shift = (shares[0] - shares[1]) / unit
    error = np.sqrt((later**2).sum() / later.sum() ** 2 + (earlier**2).sum() / earlier.sum() ** 2)
    best = int(np.argmax(shift))
    if shift[best] / error < ndtri(1 - ERROR / len(conditions)):
        return None
    condition = conditions[best]
    return Shift(condition.words, condition.feature, best, float(shares[0][best]), float(shares[1][best]))


def began(moments: Moments, cut: float, values: Floats, even: Floats) -> float:
    """Since when inputs are shifted: the moment, or the start of an earlier round from which on every round differs in
    the same way from what was before it."""
    since = moments.since(cut)
    sign = 1.0 if _mean(values, since, even) >= _mean(values, ~since, even) else -1.0
    starts = sorted(start for start in moments.starts.values() if start < cut)
    for start in reversed(starts[1:]):  # before the first one there is nothing that it could be held against
        own, before = moments.since(start) & ~moments.since(cut), ~moments.since(start)
        if sign * _score(values, own, before, even) < BACK:
            break
        cut = start
    return cut


def all_are_shifted(moments: Moments, cut: float, feature: Feature, condition: Condition, even: Floats) -> bool:
    """Whether a number has moved for all inputs since a moment, towards a condition that cuts it: those on the other
    side of the cut have moved like those beyond it. Otherwise a part of the inputs has got there."""
    if condition.cut is None:
        return False
    values, others, since = values_of(feature, condition), ~condition.ever, moments.since(cut)
    towards = 1.0 if condition.side == "over" else -1.0
    return towards * _score(values, others & since, others & ~since, even) >= BACK


def values_of(feature: Feature, condition: Condition) -> Floats:
    """What is compared of two moments: the numbers themselves without their extremes, else whether it holds."""
    if isinstance(feature, Measurements) and condition.cut is not None:
        low, high = np.nanquantile(feature.values, (0.02, 0.98))
        return np.asarray(np.clip(feature.values, low, high))
    return condition.members.astype(np.float64)


def is_clock(feature: Feature, moments: Moments) -> bool:
    """Whether a column tells little else than when an input came: it grows all the time.

    One that steps once or twice, such as the number of a release, may be what has changed: inputs of the same value
    share their ranks, and with up to three values hardly follow time. Those of one moment came in their order.
    """
    from scipy.stats import rankdata

    if not isinstance(feature, Measurements) or feature.is_named:
        return False
    known = np.isfinite(feature.values)
    if known.sum() < 10 or len(np.unique(moments.at[known])) < 2 or len(np.unique(feature.values[known])) < 2:
        return False
    value, moment = rankdata(feature.values[known]), rankdata(moments.at[known], method="ordinal")
    return bool(np.corrcoef(value, moment)[0, 1] > CLOCK)


def _mean(values: Floats, members: Members, even: Floats) -> float:
    known = members & np.isfinite(values)
    return float(np.average(values[known], weights=even[known])) if even[known].sum() > 0 else 0.0


def _score(values: Floats, own: Members, before: Members, even: Floats) -> float:
    """The difference of two means in standard errors."""
    errors = 0.0
    for members in (own, before):
        known = members & np.isfinite(values)
        w = even[known]
        if len(w) < 2 or w.sum() <= 0:
            return 0.0
        errors += float((w**2 * (values[known] - np.average(values[known], weights=w)) ** 2).sum() / w.sum() ** 2)
    return (_mean(values, own, even) - _mean(values, before, even)) / math.sqrt(max(errors, 1e-12))
