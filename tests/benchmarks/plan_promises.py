"""What ``opmon plan`` promises, and what the adaptive sampler then gives.

    python tests/benchmarks/plan_promises.py [--data DIR] [--gains] [--repetitions 20] [--json]

``--gains`` prints the mean half-width relative to Wilson's interval under simple random sampling by aim and budget:
what the tables of :mod:`opmon.samplers.widths` hold. Otherwise every row is a plan for ± 0.03 (± 0.015 at 97 %), the
half-width that its budget gives on average, and by how much that is more than promised. Variables tell as those of the
simulated classifiers do, a third as much, or nothing; with ``--data`` also those of six published classifiers.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from opmon.plugins import make
from opmon.samplers.planning import plan
from opmon.samplers.widths import plain_half_width, telling_of
from opmon.testing.populations import Population, classifier
from opmon.types import Estimate, Sample

SIZE = 10_000
AIMS = (0.0, 0.25, 0.5, 0.75, 1.0)
BUDGETS = (50, 100, 200, 400, 800)
INFORMATIVE = {"tell": 1.0, "tell a little": 0.3, "say nothing": 0.0}


def subjects(data: Path | None) -> Iterator[tuple[str, Population]]:
    for name, informative in INFORMATIVE.items():
        for accuracy in (0.8, 0.9, 0.97):
            yield name, classifier(SIZE, accuracy=accuracy, informative=informative, seed=7)
    if data is not None:
        from subjects import read_subjects

        for subject in read_subjects(data, 0.1):
            if subject.task == "classification":
                yield f"published {subject.name}", subject.population


def obtained(population: Population, aim: float, budget: int, repetitions: int) -> list[Estimate]:
    sampler, estimator, found = make("sampler", "adaptive", {"aim": aim}), make("estimator", "adaptive"), []
    for k in range(repetitions):
        rng = np.random.default_rng([k, budget])
        draw = sampler.draw(population.frame, budget, rng)
        while len(draw) < budget and draw.design == "adaptive":
            draw = sampler.next_batch(population.frame, budget, population.answer(draw), rng)
        if draw.design == "adaptive":
            found.append(estimator.estimate(Sample(draw, population.outcomes[draw.positions], "classification")))
    return found


def gains(name: str, population: Population, repetitions: int) -> Iterator[dict[str, Any]]:
    for budget in BUDGETS:
        plain = plain_half_width(1 - population.truth, budget, population.frame.size, 0.95)
        by_aim = {
            aim: np.mean([e.half_width for e in obtained(population, aim, budget, repetitions)]) / plain for aim in AIMS
        }
        yield {"variables": name, "accuracy": round(population.truth, 3), "budget": budget} | {
            f"aim {aim:g}": round(float(gain), 2) for aim, gain in by_aim.items()
        }


def promises(name: str, population: Population, repetitions: int) -> Iterator[dict[str, Any]]:
    wanted, size = 0.03 if population.truth < 0.95 else 0.015, population.frame.size
    for aim in AIMS:
        first = plan(wanted, size, accuracy=population.truth, aim=aim)
        widths = obtained(population, aim, first.budget, repetitions)
        telling = telling_of(widths[:10], aim)
        later = plan(wanted, size, accuracy=population.truth, aim=aim, telling=telling)
        again = obtained(population, aim, later.budget, repetitions)
        for when, planned, estimates in (("first round", first, widths), ("after rounds", later, again)):
            mean = float(np.mean([e.half_width for e in estimates])) if estimates else 0.0
            yield {
                "variables": name,
                "accuracy": round(population.truth, 3),
                "aim": aim,
                "planned": when,
                "budget": planned.budget,
                "plain": planned.plain_budget,
                "promised": round(planned.half_width, 4),
                "obtained": round(mean, 4),
                "more": round(mean / planned.half_width - 1, 3) if planned.half_width else 0.0,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with deepsample/*.csv and deepest/*.csv")
    parser.add_argument("--gains", action="store_true")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for name, population in subjects(options.data):
        for row in (gains if options.gains else promises)(name, population, options.repetitions):
            told = json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items())
            print(told, flush=True)


if __name__ == "__main__":
    main()
