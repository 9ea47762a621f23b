"""Failures divided into groups by what sets them apart from the inputs that the model has right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.causes.conditions import conditions_of
from opmon.causes.confusions import confusions
from opmon.causes.features import Feature, Measurements
from opmon.causes.search import Best, Searched
from opmon.errors import InputError
from opmon.types import Floats

MOST = 10
FEWEST = 5
"""A group of fewer failures is a case, and no cause."""
ERROR = 0.05
HEAVIEST = 5.0
"""No draw counts for more than so many average ones where causes are looked for: sizes are told with all weights."""

VALUE = 3.0
"""An input with a certain value stands out by so many standard deviations."""

Kind = Literal["condition", "confusion", "rest"]
Members = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Found:
    """A group of failures."""

    kind: Kind
    words: tuple[str, ...]
    """What they have in common; empty of the rest."""
    failures: Members
    """Which of the inputs are its failures: each failure is in one group."""
    members: Members
    """All inputs that have it in common, those also on which the model is right."""
    p: float | None = None
    """How probable so strong a contrast would be by chance, corrected for all conditions looked at."""
    lift: float | None = None
    """How many times as often the model fails there as on the inputs that no cause holds for."""
    lift_at_least: float | None = None
    """The lower bound of that, as far as it bears the search."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """All groups of some failures; the largest come first, and what has nothing in common last."""

    groups: tuple[Found, ...]
    conditions: int
    """So many conditions were looked at."""

    def labels(self) -> NDArray[np.int64]:
        """The number of each input's group, -1 for those that are no failures."""
        if not self.groups:
            return np.zeros(0, np.int64)
        found = np.full(len(self.groups[0].failures), -1)
        for number, group in enumerate(self.groups):
            found[group.failures] = number
        return found


def failure_groups(
    features: Sequence[Feature],
    failed: Members,
    weights: Floats | None = None,
    *,
    predicted: Sequence[str] | None = None,
    truth: Sequence[str] | None = None,
    most: int = MOST,
    seed: int = 0,
) -> Grouping:
    """Groups of the ``failed`` among labelled inputs, of which ``features`` tell something each.

    One after the other: of the inputs that no cause holds for yet, the condition is taken that has the most failures
    beyond its share, in standard errors, weighted as the inputs were drawn; up to three conditions together where they
    tell more. After each, those before are looked for again among the inputs that no other one holds for: a cut that
    was too wide, because others were not known yet, gets its place. It ends where chance alone would give as much:
    outcomes are dealt out anew, and the same search tells what the best condition of that is worth; however many
    conditions are looked at, in 95 of 100 searches without any cause none is found.

    A failure that several causes hold for belongs to the one by which it stands out most. What is left is divided by
    confused classes, where ``predicted`` and ``truth`` are given. Lifts are over the inputs that no cause holds for;
    their bounds use the limit of the search instead of 1.96.
    """
    failed = np.asarray(failed, dtype=np.bool_)
    _require(features, failed, weights)
    heavy = _tempered(weights, len(failed))
    searched = Searched.of(conditions_of(features), heavy)
    found: list[Found] = []
    if failed.sum() >= FEWEST and not failed.all() and searched.conditions:
        found = _by_conditions(searched, features, failed, most, np.random.default_rng(seed))
    left = failed & ~_any([group.failures for group in found], len(failed))
    if predicted is not None and truth is not None:
        for group in _by_confusions(predicted, truth, failed, left, most - len(found)):
            found.append(group)
            left = left & ~group.failures
    size = heavy if weights is None else weights
    found.sort(key=lambda group: -float(size[group.failures].sum()))
    if left.any():
        found.append(Found("rest", (), left, left))
    return Grouping(tuple(found), len(searched.conditions))


def _by_conditions(
    searched: Searched, features: Sequence[Feature], failed: Members, most: int, rng: np.random.Generator
) -> list[Found]:
    outcomes, fewest = failed.astype(np.float64), max(FEWEST, 0.02 * failed.sum())
    found: list[Cause] = []
    for _ in range(most):
        left = ~_held(searched, found, len(failed))
        best = searched.best(outcomes, left, fewest)
        if best is None:
            break
        centre, spread = _gumbel(searched.by_chance(outcomes, left, rng))
        cause = Cause(best, centre, spread)
        if cause.p > ERROR:
            break
        tight = replace(cause, best=searched.tight(best, outcomes, left, fewest))
        found = _settled(searched, outcomes, [*found, tight], fewest)
    found = _lifted(searched, found, failed)
    rest = ~_held(searched, found, len(failed))
    owner = _owners(searched, found, features, rest)
    told = [_told(searched, cause, failed & (owner == at), failed, rest) for at, cause in enumerate(found)]
    return [group for group in told if group.failures.any()]


@dataclass(frozen=True)
class Cause:
    """What was found, and what chance alone would have given there: Gumbel's distribution."""

    best: Best
    centre: float
    spread: float

    @property
    def limit(self) -> float:
        """What the best condition reaches in one of 20 searches without a cause."""
        return self.centre - self.spread * math.log(-math.log1p(-ERROR))

    @property
    def p(self) -> float:
        """The share of searches without a cause that would find more."""
        return float(-np.expm1(-math.exp(min(50.0, -(self.best.score - self.centre) / self.spread))))


def _settled(searched: Searched, outcomes: Floats, found: list[Cause], fewest: float, sweeps: int = 2) -> list[Cause]:
    """The causes, each looked for again among the inputs that no other one holds for."""
    for _ in range(sweeps):
        before = list(found)
        for cause in before:
            others = [each for each in found if each is not cause]
            left = ~_held(searched, others, len(outcomes))
            again = searched.best(outcomes, left, fewest)
            if again is None or replace(cause, best=again).p > ERROR:
                found = others
            else:
                found = [*others, replace(cause, best=searched.tight(again, outcomes, left, fewest))]
        if [each.best.numbers for each in found] == [each.best.numbers for each in before]:
            break
    return found


def _lifted(searched: Searched, found: Sequence[Cause], failed: Members) -> list[Cause]:
    """Those whose inputs surely fail more often than the inputs that no cause holds for."""
    kept = list(found)
    for cause in sorted(found, key=lambda each: each.best.score):
        members, rest = searched.holds(cause.best), ~_held(searched, kept, len(failed))
        if _lift(members, rest, failed, searched.weights, cause.limit)[1] <= 1:
            kept = [each for each in kept if each is not cause]
    return kept


def _owners(
    searched: Searched, found: Sequence[Cause], features: Sequence[Feature], rest: Members
) -> NDArray[np.int64]:
    """By which cause each input stands out most; -1 where none holds."""
    if not found:
        return np.full(len(rest), -1)
    depth = np.stack(
        [np.where(searched.holds(each.best), _depth(searched, each.best, features, rest), -np.inf) for each in found]
    )
    return np.where(_held(searched, found, len(rest)), depth.argmax(axis=0), -1)


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


def _told(searched: Searched, cause: Cause, failures: Members, failed: Members, rest: Members) -> Found:
    """A group with how sure it is."""
    members = searched.holds(cause.best)
    lift, least = _lift(members, rest, failed, searched.weights, max(cause.limit, 1.96))
    words = tuple(dict.fromkeys(each.words for each in searched.parts(cause.best)))
    return Found("condition", words, failures, members, cause.p, lift, least)


def _held(searched: Searched, found: Sequence[Cause], size: int) -> Members:
    return _any([searched.holds(each.best) for each in found], size)


def _any(members: Sequence[Members], size: int) -> Members:
    return np.asarray(np.logical_or.reduce([np.zeros(size, dtype=np.bool_), *members]))


def _gumbel(chance: Floats) -> tuple[float, float]:
    spread = max(float(chance.std(ddof=1)), 1e-3) * math.sqrt(6) / math.pi
    return float(chance.mean()) - 0.5772 * spread, spread


def _lift(members: Members, rest: Members, failed: Members, weights: Floats, limit: float) -> tuple[float, float]:
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


def _by_confusions(
    predicted: Sequence[str], truth: Sequence[str], failed: Members, left: Members, most: int
) -> list[Found]:
    said, true = np.asarray(predicted, dtype=object), np.asarray(truth, dtype=object)
    found: list[Found] = []
    for pair in confusions(list(said[failed]), list(true[failed])):
        failures = left & (said == pair.predicted) & (true == pair.truth)
        if len(found) < most and failures.sum() >= FEWEST:
            words = (f"predicted {pair.predicted}, truly {pair.truth}",)
            found.append(Found("confusion", words, failures, failures, pair.p))
            left = left & ~failures
    return found


def _tempered(weights: Floats | None, size: int) -> Floats:
    if weights is None:
        return np.ones(size)
    even = weights / max(float(weights.mean()), 1e-300)
    return np.minimum(even, HEAVIEST)


def _require(features: Sequence[Feature], failed: Members, weights: Floats | None) -> None:
    for feature in features:
        if len(feature.values) != len(failed):
            raise InputError(
                f"a feature has one value for each labelled input: {len(failed)}; {feature.name!r} has "
                f"{len(feature.values)}"
            )
    if weights is not None and (len(weights) != len(failed) or not (weights >= 0).all()):
        raise InputError(f"weights are one number of 0 or more for each of the {len(failed)} labelled inputs")
