"""Five rounds as one: intervals from the widths of the rounds, from all their draws, and of one round of all draws.

    python tests/benchmarks/rolling_rounds.py [--samplers srs,sups,adaptive] [--labels 50] [--repetitions 300] [--json]

Rounds are frames of 2,000 inputs of the same model; "one round" draws as many labels from the five frames as one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from opmon.estimators.rolling import combine
from opmon.plugins import make
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Frame, Sample

ROUNDS, SIZE = 5, 2000
ACCURACIES = (0.8, 0.9, 0.98, 0.995, 0.998, 0.9995)


def drawn(sampler: str, population: Population, budget: int, rng: np.random.Generator, problem: Any) -> Sample:
    chosen = make("sampler", sampler)
    draw = chosen.draw(population.frame, budget, rng)
    while len(draw) < budget:
        draw = chosen.next_batch(population.frame, budget, population.answer(draw), rng)
    return Sample(draw, population.outcomes[draw.positions], problem)


def parted(whole: Population) -> list[Population]:
    parts = [slice(start, start + SIZE) for start in range(0, ROUNDS * SIZE, SIZE)]
    return [
        Population(Frame({name: v[part] for name, v in whole.frame.variables.items()}), whole.outcomes[part])
        for part in parts
    ]


def study(sampler: str, name: str, whole: Population, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    problem = "regression" if name == "regression" else "classification"
    truth = whole.truth
    estimator, rounds = make("estimator", sampler), parted(whole)
    found: dict[str, list[tuple[bool, bool, float, float]]] = {"widths": [], "draws": [], "one round": []}
    for k in range(options.repetitions):
        rng = np.random.default_rng([k, options.labels])
        samples = [drawn(sampler, part, options.labels, rng, problem) for part in rounds]
        estimates = [estimator.estimate(sample) for sample in samples]
        several = {
            "widths": combine(estimates),
            "draws": combine(estimates, [estimator.tally(sample) for sample in samples]),
            "one round": estimator.estimate(drawn(sampler, whole, ROUNDS * options.labels, rng, problem)),
        }
        for way, one in several.items():
            found[way].append((truth < one.low, truth > one.high, one.half_width * 2, one.value - truth))
    for way, rows in found.items():
        below, above, width, error = np.array(rows).T
        yield {
            "sampler": sampler,
            "accuracy": name,
            "labels": f"{ROUNDS} x {options.labels}",
            "interval": way,
            "coverage": round(float(1 - below.mean() - above.mean()), 3),
            "below": round(float(below.mean()), 3),
            "above": round(float(above.mean()), 3),
            "width": round(float(np.median(width)), 4),
            "rmse": round(float(np.sqrt((error**2).mean())), 4),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samplers", default="srs,sups,adaptive,ssrs")
    parser.add_argument("--accuracies", default=",".join(map(str, ACCURACIES)) + ",regression")
    parser.add_argument("--labels", type=int, default=50)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for sampler in options.samplers.split(","):
        for name in options.accuracies.split(","):
            whole = regressor(ROUNDS * SIZE, seed=5)
            if name != "regression":
                whole = classifier(ROUNDS * SIZE, accuracy=float(name), seed=5)
            for row in study(sampler, name, whole, options):
                told = json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items())
                print(told, flush=True)


if __name__ == "__main__":
    main()
