"""Other lives than a sudden drop: slow drift, a drop that recovers or does not, seasons, a baseline labelled whole."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from trigger_lives import AFTER, BEFORE, HOUR, delay, evidence, lives
from trigger_pools import Pool

from opmon.decisions._bound import Bound
from opmon.decisions._sequential import weigh
from opmon.decisions._watch import Growth, Watch
from opmon.decisions.accuracy_drop import AccuracyDrop
from opmon.decisions.case import Case
from opmon.decisions.draw_values import draw_values
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.types import Draw, Sample

SRS = SimpleRandomEstimator()

ALPHA = 0.05
RECOVERY = 20
"""An alarm ends for nothing with probability 1/20 at most."""
WINDOW = 24
"""The rounds of a window of accuracy_mean."""
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
    behind = made(line + 0.01, options.pool // 3)
    yield {"rule": "level", "scene": "stays a point below the line"} | _stays(dropped, behind, bound, options, rng)
    yield {"rule": "level", "scene": "seasons up to the line"} | _seasons(good, healthy, bound, options, rng)


def _after(watch: Watch, pool: Pool, bound: Bound, rng: np.random.Generator) -> Watch:
    """One round of the pool."""
    k = int(rng.integers(len(pool.estimates)))
    return watch.after(Growth(pool.growth[k], pool.recovery[k], 1), bound, HOUR, RECOVERY)


def _recovery(
    dropped: Pool, good: Pool, bound: Bound, options: argparse.Namespace, rng: np.random.Generator
) -> dict[str, Any]:
    """50 rounds of the drop, then 100 good ones: how long until the alarm ends, and whether another one follows."""
    waited, again = [], 0
    for _ in range(WALKED):
        watch, ended = Watch(), None
        for t in range(150):
            was = watch.alarmed
            watch = _after(watch, dropped if t < 50 else good, bound, rng)
            if was and not watch.alarmed and t >= 50:
                ended = ended or t - 49
            again += t >= 50 and watch.alarmed and not was
        waited.append(ended or 100)
    return {"labels_to_recovery": round(float(np.median(waited)) * options.labels), "alarms_after": again / WALKED}


def _stays(
    dropped: Pool, behind: Pool, bound: Bound, options: argparse.Namespace, rng: np.random.Generator
) -> dict[str, Any]:
    """A drop of ten points, then 400 rounds a point below the line: how many of them are called ok.

    And how long the drop takes to be seen by the watch after a false recovery, set against the first one.
    """
    ok = rounds = lives_recovered = 0
    for _ in range(WALKED):
        watch = Watch()
        while not watch.alarmed:
            watch = _after(watch, dropped, bound, rng)
        for _ in range(400):
            watch = _after(watch, behind, bound, rng)
            ok, rounds = ok + (not watch.alarmed), rounds + 1
        lives_recovered += watch.number > 1
    waited = {}
    for name, begun in (("first", Watch()), ("again", Watch(judged=1000, since=1000, number=2))):
        found = []
        for _ in range(WALKED):
            watch = begun
            while not watch.alarmed:
                watch = _after(watch, dropped, bound, rng)
            found.append(watch.judged - begun.judged)
        waited[f"labels_to_{name}_alarm"] = round(float(np.median(found)) * options.labels)
    return {"rounds_called_ok": round(ok / rounds, 4), "lives_recovered": lives_recovered / WALKED} | waited


def varying(rng: np.random.Generator, count: int = 100, rounds: int = 480, labels: int = 200) -> dict[str, Any]:
    """A mean two points above the line of 92 %, rounds that vary by three points: which lives each promise alarms."""
    growths = [weigh(draw_values(_census(failed, labels), SRS), 0.08) for failed in range(labels + 1)]
    bound, alarmed = Bound(alpha=ALPHA), {1: 0, WINDOW: 0}
    for rates in 0.06 + 0.03 * rng.standard_normal((count, rounds)):
        failed = rng.binomial(labels, np.clip(rates, 0, 1))
        for window in alarmed:
            watch = Watch()
            for first in range(0, rounds, window):
                together = Growth.none()
                for k in range(first, first + window):
                    together = together.and_(growths[failed[k]])
                watch = watch.after(together, bound, HOUR, RECOVERY)
                if watch.alarmed:
                    alarmed[window] += 1
                    break
    shares = {"level_alarms": alarmed[1] / count, f"mean_of_{WINDOW}_alarms": alarmed[WINDOW] / count}
    return {"rule": "level and mean", "scene": f"480 rounds of {labels} labels around a good mean"} | shares


def baselines(rng: np.random.Generator, count: int = 100, rounds: int = 400) -> dict[str, Any]:
    """Constant accuracy of 90 %, frames of 50 inputs that are labelled whole: how many lives the drop rule alarms."""
    rule, alarms = AccuracyDrop(0.005, rounds=3), 0
    bound = Bound.of(rule.alpha, rule.false_alarms).halved()
    for _ in range(count):
        samples = [_census(int(failed)) for failed in rng.binomial(50, 0.1, 4)]
        estimates = [SimpleRandomEstimator().estimate(sample) for sample in samples]
        line = 1 - float(rule.judge(Case(4, estimates, samples[-1], SRS)).details["baseline"]["line"])
        growths, watch = (
            [weigh(draw_values(_census(failed), SRS), line) for failed in range(51)],
            Watch(),
        )
        for failed in rng.binomial(50, 0.1, rounds):
            watch = watch.after(growths[failed], bound, HOUR, RECOVERY)
            if watch.alarmed:
                alarms += 1
                break
    return {"rule": "drop of 0.5 points", "scene": "frames of 50 labelled whole", "false_alarms": alarms / count}


def _census(failed: int, size: int = 50) -> Sample:
    draw = Draw("srs", size, np.arange(size), constants={"replacement": np.array(False)})
    return Sample(draw, (np.arange(size) < failed) * 1.0, "classification")


def _seasons(
    good: Pool, healthy: Pool, bound: Bound, options: argparse.Namespace, rng: np.random.Generator
) -> dict[str, Any]:
    """Twelve rounds better than the line, twelve at it, a thousand rounds long."""
    phases = [good if k % 2 == 0 else healthy for k in range(84)]
    chosen = [lives(pool, options.lives, 12, rng) for pool in phases]
    alarms = evidence([pool.growth for pool in phases], chosen, bound) >= 1
    return {"false_alarms": round(float(alarms.any(axis=1).mean()), 4)}
