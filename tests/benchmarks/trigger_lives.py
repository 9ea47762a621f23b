"""Long lives of rules, all at once: rows are lives, columns are rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from trigger_pools import Pool

from opmon.decisions._bound import Bound
from opmon.decisions._watch import PRIOR

Floats = NDArray[np.float64]
Rounds = NDArray[np.int64]

NEVER = np.iinfo(np.int64).max
BEFORE = 200
"""Healthy rounds before a drop."""
AFTER = 150
"""Rounds that are looked at after it."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Delay:
    """How long a rule took from the drop: median and mean rounds, and the share of lives that alarmed too early."""

    median: float
    mean: float
    early: float


def lives(pool: Pool, count: int, rounds: int, rng: np.random.Generator) -> Rounds:
    """The rounds of the pool that each life is made of."""
    return rng.integers(0, len(pool.estimates), (count, rounds))


def evidence(growths: Sequence[Floats], chosen: Sequence[Rounds], bound: Bound, prior: Floats = PRIOR) -> Floats:
    """The evidence of a life's first :class:`opmon.decisions._watch.Watch` after every round, phase by phase."""
    capital = np.zeros((chosen[0].shape[0], len(prior)))
    path, judged, bound = [], 0, bound.of_watch(1)
    for growth, rows in zip(growths, chosen, strict=True):
        factor = np.exp(np.minimum(growth, 600.0))
        for t in range(rows.shape[1]):
            capital = np.minimum((capital + bound.weight(judged, HOUR) * prior) * factor[rows[:, t]], 1e30)
            path.append(capital.sum(axis=1))
            judged += 1
    return np.stack(path, axis=1)


def cusum(estimates: Sequence[Floats], chosen: Sequence[Rounds], reference: float) -> Floats:
    """``S ← max(0, S + loss − reference)`` after every round (Page, Biometrika 41, 1954)."""
    total = np.zeros(chosen[0].shape[0])
    path = []
    for loss, rows in zip(estimates, chosen, strict=True):
        for t in range(rows.shape[1]):
            total = np.maximum(total + loss[rows[:, t]] - reference, 0)
            path.append(total)
    return np.stack(path, axis=1)


def first(alarms: NDArray[np.bool_]) -> Rounds:
    """The column of the first alarm of every life."""
    return np.where(alarms.any(axis=1), alarms.argmax(axis=1), NEVER)


def delay(alarms: NDArray[np.bool_]) -> Delay:
    """From the drop after ``BEFORE`` rounds, over the lives that had not alarmed before."""
    at = first(alarms)
    waited = np.minimum(at[at >= BEFORE] - BEFORE + 1, AFTER).astype(np.float64)
    return Delay(float(np.median(waited)), float(waited.mean()), float((at < BEFORE).mean()))


def best_cusum(healthy: Pool, dropped: Pool, share: float, count: int, rng: np.random.Generator) -> Delay:
    """The CUSUM with the reference value that is quickest for this drop, at the given false-alarm share.

    The reference is looked for around half of the drop, which is the best for normal estimates.
    """
    whole = lives(healthy, count, 1000, rng)
    chosen = [lives(healthy, count, BEFORE, rng), lives(dropped, count, AFTER, rng)]
    found = []
    for part in (0.3, 0.4, 0.5, 0.6, 0.7):
        reference = healthy.loss + part * (dropped.loss - healthy.loss)
        limit = np.quantile(cusum([healthy.estimates], [whole], reference).max(axis=1), 1 - share)
        path = cusum([healthy.estimates, dropped.estimates], chosen, reference)
        found.append(delay(path > limit))
    return min(found, key=lambda each: (each.median, each.mean))


def oracle(healthy: Pool, dropped: Pool, share: float, count: int, rng: np.random.Generator) -> Delay:
    """The same evidence with the one bet that grows fastest at this drop, at the given false-alarm share."""
    only = np.zeros(len(PRIOR))
    only[int(dropped.growth.mean(axis=0).argmax())] = 1.0
    even = Bound(per_year=1.0)
    top = evidence([healthy.growth], [lives(healthy, count, 1000, rng)], even, only).max(axis=1)
    chosen = [lives(healthy, count, BEFORE, rng), lives(dropped, count, AFTER, rng)]
    return delay(evidence([healthy.growth, dropped.growth], chosen, even, only) > np.quantile(top, 1 - share))
