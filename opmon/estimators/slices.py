"""Estimates of the slices of a frame, and those that are worse than all others together, found with a stated error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators._ratios import TELLING
from opmon.estimators.changes import Interval, change
from opmon.quantities import Quantity
from opmon.types import Estimate

Members = NDArray[np.bool_]
Estimating = Callable[[Members, float], Estimate]
"""Estimates one quantity of the part of the frame that some draws lie in, with an interval of a level."""
ERROR = 0.05
"""The probability of calling any slice worse that is not, over all slices of a round."""


@dataclass(frozen=True)
class Behind:
    """A slice that is worse than the other inputs, by how much as estimated, and by how much at least."""

    by: float
    at_least: float


def behind(
    estimate: Estimating,
    slices: Mapping[str, Members],
    answered: Members,
    better: Quantity,
    error: float = ERROR,
    among: Mapping[str, Members] | None = None,
) -> dict[str, Behind]:
    """The slices that are worse than all inputs outside of them; the probability that any of them is not is at most
    ``error``, whichever of the others are.

    Each slice ``d`` with enough answers inside and outside has the hypothesis that it is no worse than the rest ``r``.
    It is rejected at the level ``α`` where the bound of ``R_d − R_r`` lies beyond 0,

    ``(R_d − R_r) ± sqrt((bound_d − R_d)² + (bound_r − R_r)²)``

    with the bounds of the intervals of level ``1 − 2α``, on the sides that face each other (Zou and Donner, Statistics
    in Medicine 27, 2008). Many slices are looked at by Holm's procedure (Scandinavian Journal of Statistics 6, 1979):
    all of ``m`` are tested at ``error/m``; where ``k`` of them are rejected the others are at ``error/(m − k)``, and so
    on. It assumes nothing of how slices overlap. How many answers a slice has does not depend on what they are, so
    leaving out the small ones costs nothing. ``at_least`` is the bound at the level at which the slice was rejected.
    Where ``among`` names draws for a slice, it is compared with the others among these.

    Where the lower is better the signs are turned. What is best at 0 is compared by its distance from 0, with bounds of
    intervals of level ``1 − α``: near 0 a distance can be taken for too large on either side.
    """
    known_of = among or {}
    left = {name: own for name, own in slices.items() if _enough(own, answered & known_of.get(name, answered))}
    known: dict[tuple[str, bool, float], Estimate] = {}
    sides = 1 if better.better == "zero" else 2

    def of(name: str, members: Members, inside: bool, level: float) -> Estimate:
        key = (name, inside, level)
        if key not in known:
            known[key] = estimate(members if inside else ~members & known_of.get(name, ~members), level)
        return known[key]

    found: dict[str, Behind] = {}
    while left:
        level = 1 - sides * error / len(left)
        bounds = {}
        for name, members in left.items():
            try:
                own, others = of(name, members, True, level), of(name, members, False, level)
            except InputError:  # nothing can be said of one side: there is no reason to call it worse
                continue
            bounds[name] = change(_interval(own), [_interval(others)], better.better)
        rejected = {name: Behind(gap.worse_by, gap.low) for name, gap in bounds.items() if gap and gap.is_loss}
        if not rejected:
            return found
        found |= rejected
        left = {name: members for name, members in left.items() if name not in rejected}
    return found


def _enough(members: Members, answered: Members) -> bool:
    inside = int((members & answered).sum())
    return min(inside, int(answered.sum()) - inside) >= TELLING


def _interval(estimate: Estimate) -> Interval:
    return Interval(estimate.value, estimate.low, estimate.high)
