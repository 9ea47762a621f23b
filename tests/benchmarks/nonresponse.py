"""Answers that are missing by suspicion: what they do to estimates and to the false-alarm bound.

    python tests/benchmarks/nonresponse.py [--samplers adaptive,srs] [--labels 100] [--repetitions 400] [--json]

Response falls at a step of one variable ("trusted/suspicious" gives both rates), evenly, or not at all. "strata" weighs
answers by the answered counts of their stratum alone, "propensity" also by the response propensity on all variables.
``false_alarms`` is the share of lives of a model exactly at the line that alarm within 100 rounds; the bound is 0.05.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trigger_lives import evidence

from opmon.decisions._betting import log_growth
from opmon.decisions._bound import Bound
from opmon.decisions.draw_values import draw_values
from opmon.estimators.propensity import weighed
from opmon.plugins import make
from opmon.testing.designs import design_of
from opmon.testing.populations import Population, classifier
from opmon.types import Draw, Sample

SCENES = {
    "all answered": (1.0, 1.0),
    "0.9 of all": (0.9, 0.9),
    "0.7 of all": (0.7, 0.7),
    "0.8/0.95": (0.8, 0.95),
    "0.6/0.9": (0.6, 0.9),
    "0.4/0.95": (0.4, 0.95),
    "0.95/0.8": (0.95, 0.8),
    "0.95/0.4": (0.95, 0.4),
}
"""The share answered of the trusted half of the inputs, and of the suspicious one."""
FRAME, FRAMES, ROUNDS, LIVES = 3000, 6, 100, 2000


def samples(
    sampler: str, scene: str, accuracy: float, budget: int, repetitions: int
) -> Iterator[tuple[Population, Sample]]:
    """Samples with all their waves, from frames of the same accuracy."""
    chosen = make("sampler", sampler)
    for number in range(FRAMES):
        population = classifier(FRAME, accuracy=accuracy, seed=100 + number)
        confidence = population.frame.variables["confidence"]
        chance = np.where(confidence > np.median(confidence), *reversed(SCENES[scene]))
        for k in range(repetitions // FRAMES):
            rng = np.random.default_rng([number, k, budget])
            silent = rng.random(FRAME) >= chance
            sample = answer(population, chosen.draw(population.frame, budget, rng), silent)
            while sample.draw.design == sampler and len(sample.draw) < budget:
                sample = answer(population, chosen.next_batch(population.frame, budget, sample, rng), silent)
            if sample.answered.any():
                yield population, sample


def answer(population: Population, draw: Draw, silent: NDArray[np.bool_]) -> Sample:
    outcomes = np.where(silent[draw.positions], np.nan, population.outcomes[draw.positions])
    return Sample(draw, outcomes, "classification")


def study(sampler: str, scene: str, accuracy: float, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row without and one with the propensity."""
    rows: dict[str, list[tuple[float, bool, float, bool]]] = {"strata": [], "propensity": []}
    growth: dict[str, list[NDArray[np.float64]]] = {"strata": [], "propensity": []}
    estimator = make("estimator", sampler)
    for population, sample in samples(sampler, scene, accuracy, options.labels, options.repetitions):
        variables = {name: v[sample.draw.positions] for name, v in population.frame.variables.items()}
        for way, one in (("strata", sample), ("propensity", weighed(sample, variables))):
            found, truth = estimator.estimate(one), population.truth
            rows[way].append(
                (found.value - truth, found.low <= truth <= found.high, found.half_width, one.propensity is not None)
            )
            growth[way].append(log_growth(draw_values(one, design_of(one)), 1 - truth))
    for way in rows:
        error, held, width, used = np.array(rows[way], dtype=np.float64).T
        rng = np.random.default_rng(1)
        drawn = np.stack(growth[way])
        chosen = rng.integers(0, len(drawn), (LIVES, ROUNDS))
        alarms = (evidence([drawn], [chosen], Bound(alpha=0.05)) >= 1).any(axis=1)
        yield {
            "sampler": sampler,
            "labels": options.labels,
            "accuracy": accuracy,
            "response": scene,
            "way": way,
            "bias": round(float(error.mean()), 4),
            "rmse": round(float(np.sqrt((error**2).mean())), 4),
            "coverage": round(float(held.mean()), 3),
            "half_width": round(float(width.mean()), 4),
            "false_alarms": round(float(alarms.mean()), 3),
            "used": round(float(used.mean()), 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samplers", default="adaptive,srs")
    parser.add_argument("--scenes", default=";".join(SCENES))
    parser.add_argument("--accuracy", type=float, default=0.9)
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=402)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for sampler in options.samplers.split(","):
        for scene in options.scenes.split(";"):
            for row in study(sampler, scene, options.accuracy, options):
                told = json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items())
                print(told, flush=True)


if __name__ == "__main__":
    main()
