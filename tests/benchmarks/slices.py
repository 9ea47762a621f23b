"""Slices: coverage of their intervals, how often any is called worse for nothing, promises kept, and what it costs.

    python tests/benchmarks/slices.py [--repetitions 400] [--only coverage,error,promises,time] [--json]

``coverage``: 12 slices of 3 columns that overlap, right on 70 to 99 %, by sampler and budget. ``error``: no slice is
worse than the others, or one is; how often any of the others is called so. ``promises``: ``at_least`` draws in a small
slice; bias of the whole in its standard errors, and coverage. ``time``: 10⁶ inputs, 40 slices and 12 measures.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.estimators.measured import measured
from opmon.estimators.ratios import slice_accuracy
from opmon.estimators.slices import behind
from opmon.jobs.slices import texts_of
from opmon.plugins import make
from opmon.quantities import ACCURACY
from opmon.testing.populations import classifier
from opmon.types import Frame, Labelled, Sample
from opmon.types.frame import Reserved
from opmon.types.slicing import Cut

SIZE = 20_000
Members = dict[str, NDArray[np.bool_]]


def divided(size: int, seed: int = 3) -> Members:
    """Slices of three columns: of 2 to 60 % of the inputs, and two that are crossed."""
    rng = np.random.default_rng(seed)
    country = rng.choice(["DE", "FR", "US", "XK"], size, p=[0.5, 0.3, 0.15, 0.05])
    age, channel = rng.integers(18, 90, size), rng.choice(["web", "app", "shop"], size, p=[0.6, 0.38, 0.02])
    found = {f"country {name}": country == name for name in ("DE", "FR", "US", "XK")}
    found |= {f"age {low}-{low + 24}": (age >= low) & (age < low + 24) for low in (18, 42, 66)}
    found |= {f"channel {name}": channel == name for name in ("web", "app", "shop")}
    found |= {f"country {name}, channel app": (country == name) & (channel == "app") for name in ("DE", "FR")}
    return found


def outcomes_of(members: Members, wrong: dict[str, float], usual: float, seed: int = 4) -> NDArray[np.float64]:
    """Failures at random with a rate for some slices and the usual one elsewhere, of a share that is exact."""
    rng = np.random.default_rng(seed)
    rate = np.full(SIZE, usual)
    for name, own in wrong.items():
        rate[members[name]] = own
    return (rng.random(SIZE) < rate).astype(np.float64)


def drawn(sampler: str, frame: Frame, outcomes: NDArray[np.float64], budget: int, seed: int) -> Sample:
    rng = np.random.default_rng([seed, budget])
    arguments = {"variable": "confidence"} if sampler not in ("srs", "adaptive") else {}
    chosen = make("sampler", sampler, arguments)
    draw = chosen.draw(frame, budget, rng)
    while len(draw) < budget:
        draw = chosen.next_batch(frame, budget, Sample(draw, outcomes[draw.positions], "classification"), rng)
    return Sample(draw, outcomes[draw.positions], "classification")


def coverage(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    frame, members = Frame(dict(classifier(SIZE, accuracy=0.9, seed=4).frame.variables)), divided(SIZE)
    wrong = {"country US": 0.3, "country XK": 0.01, "age 42-66": 0.15}
    outcomes = outcomes_of(members, wrong, 0.07)
    truth = {name: 1 - outcomes[own].mean() for name, own in members.items()}
    for sampler in options.samplers.split(","):
        for budget in (200, 400, 800):
            held: dict[str, list[bool]] = {name: [] for name in members}
            for seed in range(options.repetitions):
                sample = drawn(sampler, frame, outcomes, budget, seed)
                estimator = make("estimator", sample.draw.design)
                for name, own in members.items():
                    inside = own[sample.draw.positions]
                    if inside.any():
                        found = slice_accuracy(estimator, sample, inside, name)
                        held[name].append(found.low <= truth[name] <= found.high)
            cells = {name: float(np.mean(each)) for name, each in held.items()}
            yield {"what": "coverage", "sampler": sampler, "budget": budget, "slices": len(cells),
                   "mean": round(float(np.mean([*cells.values()])), 3), "least": round(min(cells.values()), 3),
                   "of": min(cells, key=lambda name: cells[name])}  # fmt: skip


def error(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """``any`` is how often any slice is called worse that is not; ``found`` how often the one that is."""
    frame, members = Frame(dict(classifier(SIZE, accuracy=0.9, seed=4).frame.variables)), divided(SIZE)
    for sampler in options.samplers.split(","):
        for usual, worse in ((0.1, None), (0.3, None), (0.02, None), (0.1, "country US")):
            for budget in (200, 800):
                false, right = 0, 0
                for seed in range(options.repetitions):
                    rng = np.random.default_rng([7, seed])
                    outcomes = np.zeros(SIZE)
                    outcomes[rng.permutation(SIZE)[: round(usual * SIZE)]] = 1.0
                    if worse is not None:
                        outcomes[members[worse] & (rng.random(SIZE) < 0.2)] = 1.0
                    rate = {name: outcomes[own].mean() - outcomes[~own].mean() for name, own in members.items()}
                    sample = drawn(sampler, frame, outcomes, budget, seed)
                    estimator = make("estimator", sample.draw.design)
                    inside = {name: own[sample.draw.positions] for name, own in members.items()}

                    def of(own: NDArray[np.bool_], level: float, e: Any = estimator, s: Sample = sample) -> Any:
                        return slice_accuracy(e, s, own, "slice", level)

                    found = behind(of, inside, sample.answered, ACCURACY)
                    false += any(rate[name] <= CHANCE for name in found)
                    right += worse in found
                yield {"what": "error", "sampler": sampler, "usual": usual, "worse": worse, "budget": budget,
                       "any": round(false / options.repetitions, 3),
                       "found": None if worse is None else round(right / options.repetitions, 3)}  # fmt: skip


CHANCE = 0.02
"""A slice that is no more than this much worse counts as no worse: populations made at random differ by chance."""


def promises(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    members = divided(SIZE)
    part = members["country XK"].astype(np.int16)
    frame = Frame(dict(classifier(SIZE, accuracy=0.9, seed=4).frame.variables), reserved=Reserved(part, (0, 40)))
    outcomes = outcomes_of(members, {"country XK": 0.3}, 0.08)
    truth, own = 1 - outcomes.mean(), 1 - outcomes[part == 1].mean()
    for sampler in ("srs", "adaptive"):
        for budget in (100, 200, 400):
            values, whole, few, least = [], [], [], budget
            for seed in range(options.repetitions):
                sample = drawn(sampler, frame, outcomes, budget, seed)
                estimator, inside = make("estimator", sample.draw.design), part[sample.draw.positions] == 1
                one = estimator.estimate(sample)
                in_slice = slice_accuracy(estimator, sample, inside, "XK")
                values.append(one.value)
                whole.append(one.low <= truth <= one.high)
                few.append(in_slice.low <= own <= in_slice.high)
                least = min(least, int(inside.sum()))
            spread = float(np.std(values))
            yield {"what": "promises", "sampler": sampler, "budget": budget, "drawn_at_least": least,
                   "bias_in_errors": round((np.mean(values) - truth) / (spread / len(values) ** 0.5), 2),
                   "rmse": round(float(np.sqrt(np.mean((np.array(values) - truth) ** 2))), 4),
                   "coverage": round(float(np.mean(whole)), 3),
                   "coverage_of_slice": round(float(np.mean(few)), 3)}  # fmt: skip


MEASURES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("accuracy", {}), ("balanced_accuracy", {}), ("recall", {"class": "a"}), ("recall", {"class": "b"}),
    ("precision", {"class": "a"}), ("precision", {"class": "b"}), ("f1", {"class": "a"}), ("f1", {"class": "b"}),
    ("brier", {}), ("log_loss", {}), ("f1", {"average": "macro"}),
    ("cost", {"matrix": {"a": {"b": 1, "c": 2}, "b": {"a": 3, "c": 1}, "c": {"a": 1, "b": 2}}}),
)  # fmt: skip


def times(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The estimates of a round of 10⁶ inputs: 40 slices by 12 measures, and which slices are worse."""
    size, budget = 1_000_000, options.budget
    rng = np.random.default_rng(1)
    began = time.perf_counter()
    texts = {
        "10 values": pa.array(np.array([f"v{k}" for k in range(10)])[rng.integers(0, 10, size)]),
        "10,000 values": pa.array(np.array([f"v{k}" for k in range(10_000)])[rng.integers(0, 10_000, size)]),
        "numbers": pa.array(rng.normal(40, 20, size)),
    }
    for name, column in texts.items():
        began = time.perf_counter()
        cut = Cut("x", edges=(0, 30, 60)) if name == "numbers" else Cut("x")
        texts_of(pa.record_batch({"x": column}), cut)
        yield {"what": "time", "step": f"a column of 10⁶: {name}", "seconds": round(time.perf_counter() - began, 3)}
    members = {f"slice {k}": rng.random(size) < share for k, share in enumerate(np.linspace(0.02, 0.6, 40))}
    frame = Frame({"confidence": rng.random(size)})
    truth = rng.choice(["a", "b", "c"], size)
    said = np.where(rng.random(size) < 0.9, truth, rng.choice(["a", "b", "c"], size))
    for sampler in options.samplers.split(","):
        sample = drawn(sampler, frame, (truth != said).astype(np.float64), budget, 1)
        at = sample.draw.positions
        scores = rng.dirichlet([1, 1, 1], len(at))
        rows = Labelled(sample.answered, truth[at], said[at], scores, ("a", "b", "c"))
        estimator = make("estimator", sample.draw.design)
        chosen = [make("measure", name, arguments) for name, arguments in MEASURES]
        inside = {name: own[at] for name, own in members.items()}
        began, worked = time.perf_counter(), time.process_time()

        def of(own: NDArray[np.bool_], level: float, e: Any = estimator, s: Sample = sample) -> Any:
            return slice_accuracy(e, s, own, "slice", level)

        worse = behind(of, inside, sample.answered, ACCURACY)
        found = time.perf_counter() - began
        for measure in chosen:
            measured(estimator, sample, rows, measure)
            for own in inside.values():
                measured(estimator, sample, rows, measure, members=own)
        yield {"what": "time", "step": f"{sampler}, budget {budget}: 40 slices, 12 measures", "worse": len(worse),
               "looking_for_the_worst": round(found, 2), "seconds": round(time.perf_counter() - began, 2),
               "processor_seconds": round(time.process_time() - worked, 2)}  # fmt: skip


PARTS = {"coverage": coverage, "error": error, "promises": promises, "time": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samplers", default="srs,adaptive,sups")
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--budget", type=int, default=400)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for part in options.only.split(","):
        for row in PARTS[part](options):
            line = json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items())
            print(line, flush=True)


if __name__ == "__main__":
    main()
