"""Long lives of the trigger rules: how often they alarm for nothing, and how soon they see a drop.

    python tests/benchmarks/triggers.py [--data DIR] [--samplers srs,sups] [--lives 2000] [--json]

Rounds come from the real samplers and estimators on frames whose failure rate is at the line (the hardest case of a
healthy model) and 5 and 10 points above it, with failures oversampled. A life draws its rounds at random from them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from trigger_lives import AFTER, BEFORE, best_cusum, delay, evidence, first, lives, oracle
from trigger_pools import SAMPLERS, STRATIFIED, Pool, pool, with_loss
from trigger_scenes import baselines, scenes, varying

from opmon.decisions._bound import Bound
from opmon.testing.populations import Population, classifier

ALPHA = 0.05
ROUNDS = 1000
FRAMES = 4
FRAME = 2000
DROPS = {"delay_5": 0.05, "delay_10": 0.10}


def subjects(data: Path | None) -> Iterator[tuple[str, Population]]:
    """The simulated classifier, and the published ones where their folder is given."""
    if data is None:
        yield "simulated", classifier(20000, accuracy=0.92, seed=3)
        return
    from subjects import read_subjects

    for subject in read_subjects(data, 0.1):
        if subject.task == "classification" and "confidence" in subject.population.frame.variables:
            yield subject.name, subject.population


def study(name: str, base: Population, sampler: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All rules on one sampler and subject."""
    rng = np.random.default_rng([options.seed, len(name), len(sampler)])
    line = round(FRAME * (1 - base.truth)) / FRAME

    def made(loss: float, rounds: int) -> Pool:
        frames = [with_loss(base, loss, FRAME, rng) for _ in range(FRAMES)]
        return pool(sampler, frames, line, options.labels, rounds, int(rng.integers(2**31)))

    healthy = made(line, options.pool)
    dropped = {key: made(line + size, options.pool // 3) for key, size in DROPS.items()}
    whole, count = lives(healthy, options.lives, ROUNDS, rng), options.lives
    chosen = {
        key: [lives(healthy, count, BEFORE, rng), lives(found, count, AFTER, rng)] for key, found in dropped.items()
    }
    head = {"subject": name, "line": round(1 - line, 4), "sampler": sampler, "lives": count, "labels": options.labels}

    def row(rule: str, share: float, delays: dict[str, Any], **more: Any) -> dict[str, Any]:
        waited = {key: round(each.median * options.labels) for key, each in delays.items()}
        means = {f"mean_{key}": round(each.mean * options.labels) for key, each in delays.items()}
        none = dict.fromkeys(DROPS)
        return head | {"rule": rule, "false_alarms": round(share, 4)} | none | waited | means | more

    share = 0.0
    for rule, bound in (("level", Bound(alpha=ALPHA)), ("level, 1 per 1000 rounds", Bound(per_year=8766 / ROUNDS))):
        alarms = evidence([healthy.growth], [whole], bound) >= 1
        delays = {key: delay(evidence([healthy.growth, dropped[key].growth], chosen[key], bound) >= 1) for key in DROPS}
        share = float(alarms.any(axis=1).mean()) if rule == "level" else share
        yield row(rule, float(alarms.any(axis=1).mean()), delays)
    for rule, which in (("repeated 95 % intervals", "below"), ("Bonferroni", "surely_below")):
        alarms = getattr(healthy, which)[whole]
        delays = (
            {
                key: delay(
                    np.hstack([getattr(healthy, which)[chosen[key][0]], getattr(dropped[key], which)[chosen[key][1]]])
                )
                for key in DROPS
            }
            if rule == "Bonferroni"
            else {}
        )
        yield row(rule, float(first(alarms).__lt__(ROUNDS).mean()), delays)
    target = max(share, 4 / count)
    yield row("CUSUM", target, {key: best_cusum(healthy, dropped[key], target, count, rng) for key in DROPS})
    yield row("oracle", target, {key: oracle(healthy, dropped[key], target, count, rng) for key in DROPS})
    if options.scenes:
        yield from (head | scene for scene in scenes(made, line, healthy, dropped["delay_10"], options, rng))


def verdicts(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, bool]]:
    """The bars, and whether they hold."""
    ours = [row for row in rows if row["rule"] == "level" and "scene" not in row]
    noise = 3 * np.sqrt(ALPHA * (1 - ALPHA) / max(row["lives"] for row in ours))
    for row in ours:
        limit = ALPHA * (1.2 if row["sampler"] in STRATIFIED else 1) + noise
        found = f"{row['subject']} {row['sampler']}: false alarms {row['false_alarms']:.4f}, bound {ALPHA}"
        yield "false alarms", found, row["false_alarms"] <= limit
    ratios = []
    for row in ours:
        tuned = next(r for r in rows if r["rule"] == "CUSUM" and all(r[k] == row[k] for k in ("subject", "sampler")))
        for key in DROPS:
            ratios.append(row[key] / tuned[key])
            found = (
                f"{row['subject']} {row['sampler']} {key}: {row[key]} labels, CUSUM {tuned[key]}: {ratios[-1]:.2f} x"
            )
            yield "delay", found, ratios[-1] <= 2
    for row in rows:
        head = f"{row['subject']} {row['sampler']}, {row.get('scene')}"
        if "rounds_called_ok" in row:
            share, first, again = (
                row[key] for key in ("rounds_called_ok", "labels_to_first_alarm", "labels_to_again_alarm")
            )
            yield "false recoveries", f"{head}: {share:.1%} of the rounds called ok", share <= ALPHA
            yield "alarm after one", f"{head}: {again} labels, the first took {first}", again <= 2 * first
        if "level_alarms" in row:
            found = f"{head}: level alarms {row['level_alarms']:.0%} of lives, mean {row['mean_of_24_alarms']:.0%}"
            yield "mean over a window", found, row["mean_of_24_alarms"] <= ALPHA
        if row["sampler"] == "census":
            found = f"{head}: {row['false_alarms']:.1%} of lives"
            yield "false alarms", found, row["false_alarms"] <= ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / 100)
    yield "delay on average", f"{np.mean(ratios):.2f} x, largest {max(ratios):.2f} x", float(np.mean(ratios)) <= 1.6


def main() -> None:
    options = _options()
    rows, began = [], time.perf_counter()
    for name, base in subjects(options.data):
        if options.subjects and name not in options.subjects.split(","):
            continue
        for sampler in options.samplers.split(","):
            for row in study(name, base, sampler, options):
                rows.append(row)
                print(json.dumps(row) if options.json else _words(row), flush=True)
    if options.scenes:
        rng = np.random.default_rng(options.seed)
        rows.append({"subject": "constant", "sampler": "census"} | baselines(rng))
        rows.append({"subject": "varying", "sampler": "srs"} | varying(rng))
        for row in rows[-2:]:
            print(json.dumps(row) if options.json else _words(row), flush=True)
    if options.json:
        return
    print(f"\n{time.perf_counter() - began:.0f} s")
    for bar, found, holds in verdicts(rows):
        print(f"{'holds ' if holds else 'BROKEN'} {bar}: {found}")


def _words(row: dict[str, Any]) -> str:
    head = f"{row['subject']:<12} {row['sampler']:<10} {row['rule']:<25}"
    rest = {
        key: value for key, value in row.items() if key not in ("subject", "sampler", "rule", "lives", "labels", "line")
    }
    return head + "  ".join(f"{key} {value}" for key, value in rest.items())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with deepsample/*.csv and deepest/*.csv")
    parser.add_argument("--subjects", default="", help="only these, by name")
    parser.add_argument("--samplers", default=",".join(SAMPLERS))
    parser.add_argument("--labels", type=int, default=50, help="labels per round")
    parser.add_argument("--lives", type=int, default=2000)
    parser.add_argument("--pool", type=int, default=6000, help="rounds that lives draw from")
    parser.add_argument("--scenes", action="store_true", help="also slow drift, recovery, seasons")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
