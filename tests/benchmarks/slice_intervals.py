"""Intervals of slices: how often they hold the truth of the slice, by how many answers fall into it.

    python tests/benchmarks/slice_intervals.py [--samplers srs,sups,adaptive] [--repetitions 400] [--json]

Slices are a random share of a frame of 20,000 inputs; their failures are its most suspicious ones. ``regression`` has
losses with the tails of a squared normal or of a log-normal. A row is one slice at one budget.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.estimators.ratios import slice_accuracy
from opmon.plugins import make
from opmon.testing.populations import Population, classifier
from opmon.types import Draw, Frame, Sample

SIZE = 20_000
CELLS = [(0.05, 200), (0.05, 400), (0.1, 100), (0.1, 220), (0.2, 100), (0.2, 400)]
"""The share of the slice, and the budget: 5 to 80 answers in the slice under simple random sampling."""
ACCURACIES = (0.8, 0.95, 0.98, 0.995, 0.999)
LOSSES: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "squared normal": lambda rng, n: rng.normal(size=n) ** 2,
    "log-normal 1": lambda rng, n: rng.lognormal(0, 1, n),
    "squared t5": lambda rng, n: rng.standard_t(5, n) ** 2,
}


def shares(accuracy: float, share: float) -> tuple[Population, NDArray[np.bool_]]:
    """A classifier right on 90 % in all and on ``accuracy`` of a slice."""
    base = classifier(SIZE, accuracy=0.9, seed=4)
    rng = np.random.default_rng(7)
    inside = rng.permutation(SIZE) < share * SIZE
    suspicion = base.frame.variables["confidence"] * np.exp(rng.normal(size=SIZE))
    order = np.flatnonzero(inside)[np.argsort(-suspicion[inside])]
    outcomes = base.outcomes.copy()
    outcomes[order] = 0.0
    outcomes[order[: round((1 - accuracy) * len(order))]] = 1.0
    return Population(base.frame, outcomes), inside


def losses(kind: str, share: float) -> tuple[Population, NDArray[np.bool_]]:
    rng = np.random.default_rng(8)
    y = LOSSES[kind](rng, SIZE)
    chi = np.exp(0.5 * np.log(y + 1e-3) + 0.7 * rng.normal(size=SIZE))
    return Population(Frame({"confidence": chi / chi.max()}), y), rng.permutation(SIZE) < share * SIZE


def rows(
    sampler: str, name: str, population: Population, inside: NDArray[np.bool_], budget: int, repetitions: int
) -> dict[str, Any]:
    problem = "classification" if np.isin(population.outcomes, (0, 1)).all() else "regression"
    loss = float(population.outcomes[inside].mean())
    truth = 1 - loss if problem == "classification" else loss
    chosen = make("sampler", sampler, {"variable": "confidence"} if sampler not in ("srs", "adaptive") else {})
    prepared = chosen.prepare(population.frame, budget) if sampler not in ("srs", "adaptive") else None
    below, above, widths, answers, few = 0, 0, [], [], 0
    for k in range(repetitions):
        rng = np.random.default_rng([k, budget])
        draw: Draw = prepared(rng) if prepared else chosen.draw(population.frame, budget, rng)
        while len(draw) < budget:
            draw = chosen.next_batch(population.frame, budget, population.answer(draw), rng)
        members = inside[draw.positions]
        if not members.any():
            continue
        sample = Sample(draw, population.outcomes[draw.positions], problem)
        found = slice_accuracy(make("estimator", sampler), sample, members, "slice")
        below, above = below + (truth < found.low), above + (truth > found.high)
        widths.append(found.half_width)
        answers.append(int(members.sum()))
        few += any("too few" in note for note in found.notes)
    count = len(answers)
    return {
        "slice": name,
        "sampler": sampler,
        "budget": budget,
        "answers": round(float(np.mean(answers)), 1),
        "coverage": round(1 - (below + above) / count, 3),
        "below": round(below / count, 3),
        "above": round(above / count, 3),
        "half_width": round(float(np.median(widths)), 4),
        "too_few": round(few / count, 2),
    }


def study(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for sampler in options.samplers.split(","):
        for share, budget in CELLS:
            for accuracy in ACCURACIES:
                population, inside = shares(accuracy, share)
                yield rows(sampler, f"{accuracy} right", population, inside, budget, options.repetitions)
            for kind in LOSSES:
                population, inside = losses(kind, share)
                yield rows(sampler, kind, population, inside, budget, options.repetitions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samplers", default="srs,sups,adaptive")
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for row in study(options):
        print(
            json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items()), flush=True
        )


if __name__ == "__main__":
    main()
