"""Conditions that set failures apart from what the model has right, one after the other until chance gives as much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opmon.causes.features import Feature, Measurements
from opmon.causes.search import Best, Searched
from opmon.types import Floats

FEWEST = 5
"""A group of fewer failures is a case, and no cause."""
ERROR = 0.05
"""Something is named where there is no cause in so many of all searches."""
VALUE = 3.0
"""An input with a certain value stands out by so many standard deviations."""

Members = NDArray[np.bool_]


@dataclass(frozen=True)
class Cause:
    """What was found, and what chance alone would have given there: Gumbel's distribution."""

    best: Best
    centre: float
    spread: float
    error: float = ERROR
    """In so many searches without a cause one is named."""

    @property
    def limit(self) -> float:
        """What the best condition reaches without a cause in just so many searches."""
        return self.centre - self.spread * math.log(-math.log1p(-self.error))

    @property
    def is_sure(self) -> bool:
        return self.p <= self.error

    @property
    def p(self) -> float:
        """The share of searches without a cause that would find more."""
        return float(-np.expm1(-math.exp(min(50.0, -(self.best.score - self.centre) / self.spread))))


def causes_of(
    searched: Searched,
    failed: Members,
    within: Members,
    most: int,
    rng: np.random.Generator,
    error: float = ERROR,
) -> list[Cause]:
    """The conditions that hold for too many of the failures among the inputs ``within``, each found among the inputs
    that no other one holds for."""
    outcomes, fewest = failed.astype(np.float64), max(FEWEST, 0.02 * failed.sum())
    found: list[Cause] = []
    for _ in range(most):
        left = within & ~held(searched, found)
        best = searched.best(outcomes, left, fewest)
        if best is None:
            break
        centre, spread = _gumbel(searched.by_chance(outcomes, left, rng))
        cause = Cause(best, centre, spread, error)
        if not cause.is_sure:
            break
        tight = replace(cause, best=searched.tight(best, outcomes, left, fewest))
        found = _settled(searched, outcomes, [*found, tight], within, fewest)
    return _lifted(searched, found, failed, within)


def held(searched: Searched, found: Sequence[Cause]) -> Members:
    """The inputs that any of them holds for."""
    return any_of([searched.holds(each.best) for each in found], len(searched.weights))


def any_of(members: Sequence[Members], size: int) -> Members:
    return np.asarray(np.logical_or.reduce([np.zeros(size, dtype=np.bool_), *members]))


def owners(
    searched: Searched,
    found: Sequence[Cause],
    members: Sequence[Members],
    features: Sequence[Feature],
    rest: Members,
) -> NDArray[np.int64]:
    """By which cause each input stands out most, of those whose ``members`` it is among; -1 where it is of none."""
    if not found:
        return np.full(len(rest), -1)
    depth = np.stack(
        [
            np.where(own, _depth(searched, each.best, features, rest), -np.inf)
            for each, own in zip(found, members, strict=True)
        ]
    )
    return np.where(any_of(members, len(rest)), depth.argmax(axis=0), -1)


def lift_of(members: Members, rest: Members, failed: Members, weights: Floats, limit: float) -> tuple[float, float]:
    """How many times as often the model fails there as in the rest, and at least: on the scale of logarithms."""
    rates, errors = [], 0.0
    unit = float((weights**2).sum() / weights.sum())
    for part in (members, rest):
        mass = float(weights[part].sum())
        rate = (float(weights[part & failed].sum()) + 0.5 * unit) / (mass + unit)
        errors += float((weights[part] ** 2).sum()) * (1 - rate) / rate / (mass + unit) ** 2
        rates.append(rate)
    lift = rates[0] / rates[1]
    return lift, lift * math.exp(-limit * math.sqrt(errors))


def _settled(
    searched: Searched, outcomes: Floats, found: list[Cause], within: Members, fewest: float, sweeps: int = 2
) -> list[Cause]:
    """The causes, each looked for again among the inputs that no other one holds for."""
    for _ in range(sweeps):
        before = list(found)
        for cause in before:
            others = [each for each in found if each is not cause]
            left = within & ~held(searched, others)
            again = searched.best(outcomes, left, fewest)
            if again is None or not replace(cause, best=again).is_sure:
                found = others
            else:
                found = [*others, replace(cause, best=searched.tight(again, outcomes, left, fewest))]
        if [each.best.numbers for each in found] == [each.best.numbers for each in before]:
            break
    return found


def _lifted(searched: Searched, found: Sequence[Cause], failed: Members, within: Members) -> list[Cause]:
    """Those whose inputs surely fail more often than the inputs that no cause holds for."""
    kept = list(found)
    for cause in sorted(found, key=lambda each: each.best.score):
        members, rest = within & searched.holds(cause.best), within & ~held(searched, kept)
        if lift_of(members, rest, failed, searched.weights, cause.limit)[1] <= 1:
            kept = [each for each in kept if each is not cause]
    return kept


def _depth(searched: Searched, best: Best, features: Sequence[Feature], rest: Members) -> Floats:
    """How far beyond its cuts each input is, in robust standard deviations of the inputs that no cause holds for; a
    value that is there is far, whatever it is."""
    depths = []
    for condition in searched.parts(best):
        feature = features[condition.feature]
        if condition.cut is None or not isinstance(feature, Measurements):
            depths.append(np.full(len(rest), VALUE))
            continue
        usual = feature.values[rest & np.isfinite(feature.values)]
        spread = 1.4826 * float(np.median(np.abs(usual - np.median(usual)))) if len(usual) else 0.0
        spread = spread or float(np.nanstd(feature.values)) or 1.0
        beyond = (feature.values - condition.cut) / spread
        depths.append(np.nan_to_num(beyond if condition.side == "over" else -beyond))
    return np.asarray(np.min(depths, axis=0))


def _gumbel(chance: Floats) -> tuple[float, float]:
    spread = max(float(chance.std(ddof=1)), 1e-3) * math.sqrt(6) / math.pi
    return float(chance.mean()) - 0.5772 * spread, spread
