"""Long lives of ``measure_level``: how often it alarms for nothing, and how soon it sees what is below its line.

    python tests/benchmarks/measure_lives.py [--labels 300] [--pool 150] [--lives 1000] [--rounds 200]

Models look for a class of 1 or 2 % of the inputs, once with scores that tell it well (a precision above 0.9) and once
with scores that do not (0.3); draws aim at the measure, or are simple random ones. Every measure is judged at the line
where the model stands, the hardest case of a healthy one, and at the line of a model that it has fallen from. Lives
draw their rounds at random from a pool. "Before" are draws of which it is not kept what the model predicts in the
frame: bets on them are held back by the largest weight of the design.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from aiming import Population, aimed, plain

from opmon.abc import Measure
from opmon.decisions._bound import Bound
from opmon.decisions._own import Own
from opmon.decisions._watch import Growth, Watch
from opmon.decisions.case import Case
from opmon.decisions.measure_level import MeasureLevel
from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.measures.cost import Cost
from opmon.measures.f1 import F1Score
from opmon.measures.precision import Precision
from opmon.measures.recall import Recall
from opmon.types import Estimate, Sample

CLASSES = ("ok", "fraud")
COST = Cost({"fraud": {"ok": 100.0}, "ok": {"fraud": 5.0}}, unit="EUR")
ALPHA = 0.05


def searched(rate: float, recall: float, apart: float, size: int = 20_000, seed: int = 1) -> Population:
    """A class of ``rate`` of the inputs, scored ``apart`` standard deviations higher, of which so much is found."""
    rng = np.random.default_rng(seed)
    truth = rng.random(size) < rate
    score = rng.normal(size=size) + apart * truth
    odds = apart * score - apart**2 / 2 + np.log(rate / (1 - rate))
    chance = 1 / (1 + np.exp(-odds))
    said, words = chance > np.quantile(chance[truth], 1 - recall), np.array(CLASSES)
    return Population(
        f"{rate:.0%}, {apart} apart",
        words[truth.astype(int)],
        words[said.astype(int)],
        CLASSES,
        np.stack([1 - chance, chance], axis=1),
        {"confidence": np.minimum(chance, 1 - chance).astype(np.float32)},
    )


def drawn(population: Population, measure: Measure, aims: bool, labels: int, rng: np.random.Generator) -> Sample:
    return aimed(population, measure, labels, rng) if aims else plain(population, labels, rng)


def growth(rule: MeasureLevel, population: Population, measure: Measure, sample: Sample) -> Growth:
    """What a round adds to the evidence."""
    nothing = Estimate(0.0, 0.0, 1.0, n=1, frame_size=1, response=1.0, method="none", quantity=measure.quantity())
    design = AdaptiveEstimator() if sample.draw.design == "adaptive" else SimpleRandomEstimator()
    rows = population.rows(sample.draw.positions)
    verdict = rule.judge(Case(1, (nothing,), sample, design, measure=measure, rows=rows))
    own = Own.of(verdict.details)
    return Growth.none() if own is None else own.growth


def bare(sample: Sample) -> Sample:
    """The sample of a draw of which it is not kept what is predicted in the frame."""
    kept = {name: values for name, values in sample.draw.constants.items() if not name.startswith("predicted")}
    return replace(sample, draw=replace(sample.draw, constants=kept))


def alarms(pool: list[Growth], lives: int, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """The round of each life's first alarm; one more than there are where it has none."""
    found, bound = np.full(lives, rounds + 1), Bound(alpha=ALPHA)
    for life in range(lives):
        watch = Watch()
        for number, at in enumerate(rng.integers(len(pool), size=rounds), 1):
            watch = watch.after(pool[at], bound, None, 20.0)
            if watch.alarmed:
                found[life] = number
                break
    return found


def measures(population: Population) -> Iterator[tuple[Measure, float]]:
    """A measure, and the line that a model which was better would have."""
    yield Recall("fraud"), 0.6
    yield F1Score("fraud"), population.true(F1Score("fraud")) + 0.25
    yield Precision("fraud"), min(population.true(Precision("fraud")) + 0.15, 0.99)
    yield COST, population.true(COST) * 0.55


def compared(population: Population, aims: bool, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(options.seed)
    for measure, line in measures(population):
        samples = [drawn(population, measure, aims, options.labels, rng) for _ in range(options.pool)]
        at = population.true(measure)
        for when, taken in (("before", [bare(each) for each in samples]), ("now", samples)):
            healthy, fallen = (
                [growth(MeasureLevel(limit, alpha=ALPHA), population, measure, each) for each in taken]
                for limit in (at, line)
            )
            false = alarms(healthy, options.lives, options.rounds, rng)
            late = alarms(fallen, options.lives // 4, options.rounds, rng)
            yield {
                "population": population.name,
                "draws": "aimed" if aims else "srs",
                "measure": measure.quantity().name,
                "value": round(at, 3),
                "line": round(line, 3),
                "when": when,
                "false alarms": float((false <= options.rounds).mean()),
                "rounds": float(np.median(late)),
                "mean": float(late.mean()),
                "growth": float(np.exp(np.stack([each.alarm for each in healthy])).mean(axis=0).max()),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=300)
    parser.add_argument("--pool", type=int, default=150)
    parser.add_argument("--lives", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for rate, apart in ((0.01, 3.0), (0.02, 3.0), (0.02, 1.5)):
        for aims in (True, False):
            for row in compared(searched(rate, 0.2, apart), aims, options):
                print(
                    f"{row['population']:14} {row['draws']:5} {row['measure']:16} {row['value']:6.3f} line "
                    f"{row['line']:6.3f} {row['when']:6} false alarms {row['false alarms']:.3f}, alarm after "
                    f"{row['rounds']:5.1f} rounds (mean {row['mean']:5.1f}); mean e-value "
                    f"{row['growth']:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
