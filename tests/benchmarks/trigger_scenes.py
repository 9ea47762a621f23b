"""Other lives than a sudden drop: slow drift, a drop that recovers, seasons on the good side of the line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
from trigger_lives import AFTER, BEFORE, delay, evidence, lives
from trigger_pools import Pool

from opmon.decisions._bound import Bound
from opmon.decisions._watch import Watch

ALPHA = 0.05
WALKED = 200
"""Lives that are walked round by round with the rule's own :class:`Watch`."""


def scenes(
    made: Callable[[float, int], Pool],
    line: float,
    healthy: Pool,
    dropped: Pool,
    options: argparse.Namespace,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    bound, count = Bound(alpha=ALPHA), options.lives
    steps = [made(line + size, options.pool // 6) for size in (0.02, 0.04, 0.06, 0.08)]
    phases = [healthy, *steps, dropped]
    lengths = [BEFORE, *[20] * len(steps), AFTER]
    chosen = [lives(pool, count, length, rng) for pool, length in zip(phases, lengths, strict=True)]
    slow = delay(evidence([pool.growth for pool in phases], chosen, bound) >= 1)
    yield {
        "rule": "level",
        "scene": "slow drift, 10 points in 100 rounds",
        "delay": round(slow.median * options.labels),
    }
    good = made(max(line - 0.04, line / 2), options.pool // 3)
    yield {"rule": "level", "scene": "drop of 10 points, then recovery"} | _recovery(dropped, good, bound, options, rng)
    yield {"rule": "level", "scene": "seasons up to the line"} | _seasons(good, healthy, bound, options, rng)


def _recovery(
    dropped: Pool, good: Pool, bound: Bound, options: argparse.Namespace, rng: np.random.Generator
) -> dict[str, Any]:
    """50 rounds of the drop, then 100 good ones: how long until the alarm ends, and whether another one follows."""
    waited, again = [], 0
    for _ in range(WALKED):
        watch, ended = Watch(), None
        for t in range(150):
            pool = dropped if t < 50 else good
            k = int(rng.integers(len(pool.estimates)))
            was = watch.alarmed
            watch = watch.after(pool.growth[k], bound.weight(watch.judged, timedelta()), float(pool.recovery[k]), 20)
            if was and not watch.alarmed and t >= 50:
                ended = ended or t - 49
            again += t >= 50 and watch.alarmed and not was
        waited.append(ended or 100)
    return {"labels_to_recovery": round(float(np.median(waited)) * options.labels), "alarms_after": again / WALKED}


def _seasons(
    good: Pool, healthy: Pool, bound: Bound, options: argparse.Namespace, rng: np.random.Generator
) -> dict[str, Any]:
    """Twelve rounds better than the line, twelve at it, a thousand rounds long."""
    phases = [good if k % 2 == 0 else healthy for k in range(84)]
    chosen = [lives(pool, options.lives, 12, rng) for pool in phases]
    alarms = evidence([pool.growth for pool in phases], chosen, bound) >= 1
    return {"false_alarms": round(float(alarms.any(axis=1).mean()), 4)}
