"""Bias, error, failures and coverage of every sampler on populations with known truth.

    python tests/benchmarks/samplers.py --data DIR [--techniques sups,adaptive] [--budgets 50,200] [--json]

Every CSV under DIR/deepsample and DIR/deepest is a subject. Each cell (technique × variable × budget × subject) is
repeated; published figures (DIR/published.csv) are set beside ours where there are any. CES needs activations, which
the published CSVs do not hold: it runs only on subjects that have them.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sampler_bars
import sampler_figure
import sampler_report
import subjects

from opmon import plugins
from opmon.samplers._checks import auxiliary
from opmon.samplers._weights import Mixture, Weights
from opmon.testing.populations import Population
from opmon.types import Draw, Frame

FULL = 500
"""Repetitions of the full study."""
BUDGETS = (50, 100, 200, 400, 800)


@dataclass(frozen=True)
class Technique:
    """A sampler as benchmarked: ``per`` says whether it is run per variable, on all of them, or without any."""

    sampler: str
    arguments: dict[str, Any]
    per: str = "each"
    usual: bool = True


TECHNIQUES = {
    "srs": Technique("srs", {}, "none"),
    "ces": Technique("ces", {}, "none"),
    "sups": Technique("sups", {"defensive": 0.0}),
    "rhc-s": Technique("rhc", {"defensive": 0.0}),
    "2-ups": Technique("two_stage", {"defensive": 0.0}),
    "ssrs": Technique("ssrs", {}),
    "gbs": Technique("gbs", {}),
    "css": Technique("css", {}),
    "deepest": Technique("deepest", {}),
    "deepest-target": Technique("deepest", {"activation": "target"}),
    "adaptive": Technique("adaptive", {}, "all"),
    "adaptive-estimate": Technique("adaptive", {"aim": 0.0}, "all"),
    "adaptive-expose": Technique("adaptive", {"aim": 1.0}, "all+confidence"),
    "sups-defensive": Technique("sups", {}, usual=False),
    "rhc-s-defensive": Technique("rhc", {}, usual=False),
    "2-ups-defensive": Technique("two_stage", {}, usual=False),
}
"""The papers' designs as published (no defensive share), and opmon's own. Those not usual run when they are named."""


@dataclass(frozen=True)
class Work:
    subject: int
    technique: str
    variable: str
    budget: int
    repetitions: int
    seed: int


SUBJECTS: list[subjects.Subject] = []
ESTIMATORS: dict[str, Any] = {}


def main() -> int:
    options = arguments()
    began = time.perf_counter()
    SUBJECTS.extend(subjects.read_subjects(options.data, options.failing_error))
    ESTIMATORS.update({name: plugins.make("estimator", name) for name in plugins.names("estimator")})
    work = sorted(cells(options), key=lambda cell: -cell.budget * (4 if cell.technique.startswith("adaptive") else 1))
    results = []
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        for done, result in enumerate(pool.imap_unordered(run, work), start=1):
            results.append(result)
            if sys.stderr.isatty():
                print(f"\r{done}/{len(work)} cells", end="", file=sys.stderr)
    results.sort(key=lambda result: order_of(result[0]))
    if options.json:
        for row, _ in results:
            print(json.dumps(row))
        return 0
    published = sampler_report.read_published(options.data / "published.csv")
    inside = sampler_report.summary(results, published)
    rows = [row for row, _ in results]
    sampler_figure.frontier(rows, options.figure)
    verdicts = sampler_bars.bars(rows, published, inside)
    print("", *verdicts, sep="\n")
    if options.repetitions < FULL:
        print(f"(the bars are made for {FULL} repetitions: with {options.repetitions}, cells miss them by chance)")
    print(f"\n{len(work)} cells, {options.repetitions} repetitions each: {time.perf_counter() - began:.0f} s")
    return 0 if all(bar.met for bar in verdicts) else 1


def order_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("task", "subject", "variable", "technique", "budget"))


def arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [part.strip() for part in text.split(",") if part.strip()]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with deepsample/ and deepest/")
    parser.add_argument("--techniques", type=names, default=None, help=f"of: {', '.join(TECHNIQUES)}")
    parser.add_argument("--variables", type=names, default=None, help="such as confidence,dsa; none and all always run")
    parser.add_argument("--budgets", type=lambda text: [int(part) for part in names(text)], default=list(BUDGETS))
    parser.add_argument("--repetitions", type=int, default=FULL)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failing-error", type=float, default=0.6, help="regression: an error above it is a failure")
    parser.add_argument("--json", action="store_true", help="one JSON object per cell and line instead of the tables")
    parser.add_argument("--figure", type=Path, default=None, help="write the RMSE-failures frontier to this file")
    options = parser.parse_args()
    unknown = set(options.techniques or []) - set(TECHNIQUES)
    if unknown:
        parser.error(f"unknown technique {', '.join(sorted(unknown))}; there are: {', '.join(TECHNIQUES)}")
    return options


def cells(options: argparse.Namespace) -> Iterator[Work]:
    there = set(plugins.names("sampler"))
    for label, technique in TECHNIQUES.items():
        wanted = label in options.techniques if options.techniques else technique.usual
        if not wanted or technique.sampler not in there:
            continue
        for number, subject in enumerate(SUBJECTS):
            if technique.sampler == "ces" and subject.population.frame.activations is None:
                continue
            for variable in variables_of(technique, subject):
                if variable not in ("none", "all") and options.variables and variable not in options.variables:
                    continue
                for budget in options.budgets:
                    yield Work(number, label, variable, budget, options.repetitions, options.seed)


def variables_of(technique: Technique, subject: subjects.Subject) -> list[str]:
    known = list(subject.population.frame.variables)
    return {
        "none": ["none"],
        "all": ["all"],
        "all+confidence": ["all", *(name for name in known if name == "confidence")],
        "each": known,
    }[technique.per]


def run(work: Work) -> tuple[dict[str, Any], np.ndarray]:
    """The row of one cell, and per repetition the error, the failures drawn and the distinct inputs among them.

    ``failures`` counts draws, as the papers do: an input drawn twice counts twice.
    """
    subject, technique = SUBJECTS[work.subject], TECHNIQUES[work.technique]
    population = subject.population
    given = dict(technique.arguments)
    if technique.per == "each":
        given["variable"] = work.variable
    elif work.variable not in ("none", "all"):
        given["variables"] = (work.variable,)
    sampler = plugins.make("sampler", technique.sampler, given)
    label = f"{subject.name} {work.technique} {work.variable} {work.budget}"
    rng = np.random.default_rng([work.seed, zlib.crc32(label.encode())])
    prepared = sampler.prepare(population.frame, work.budget) if hasattr(sampler, "prepare") else None
    errors, failures, distinct = np.empty((3, work.repetitions))
    covered, half_width = 0, 0.0
    for k in range(work.repetitions):
        draw = prepared(rng) if prepared else sampler.draw(population.frame, work.budget, rng)
        draw = to_the_end(sampler, draw, population, work.budget, rng)
        sample = population.answer(draw)
        found = ESTIMATORS[draw.design].estimate(sample)
        errors[k] = found.value - population.truth
        failed = draw.positions[sample.outcomes > subject.failing]
        failures[k], distinct[k] = len(failed), len(np.unique(failed))
        covered += found.low <= population.truth <= found.high
        half_width += found.half_width / work.repetitions
    row = {
        "subject": subject.name,
        "task": subject.task,
        "variable": work.variable,
        "technique": work.technique,
        "budget": work.budget,
        "repetitions": work.repetitions,
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "rmedse": float(np.sqrt(np.median(errors**2))),
        "bias": float(errors.mean()),
        "failures": float(failures.mean()),
        "coverage": covered / work.repetitions,
        "half_width": half_width,
        "distinct_failures": float(distinct.mean()),
        "standard_error": monte_carlo_error(errors, sampler, population, work.budget),
    }
    return row, np.stack([errors, failures, distinct])


def monte_carlo_error(errors: np.ndarray, sampler: Any, population: Population, budget: int) -> float:
    """The standard error of the bias: the one observed or, where that is larger, the one of the design.

    Draws in proportion to a variable give some failures a chance of 10^-6 and a weight of 1000: the repetitions hardly
    ever see one, so what they show is too small.
    """
    observed = errors.std(ddof=1) if len(errors) > 1 else 0.0
    p = draw_probabilities(sampler, population.frame)
    if p is None:
        return float(observed / math.sqrt(len(errors)))
    y = population.outcomes / population.frame.size
    design = math.sqrt(max(float((y**2 / p).sum() - y.sum() ** 2), 0.0) / budget)
    return max(float(observed), design) / math.sqrt(len(errors))


def draw_probabilities(sampler: Any, frame: Frame) -> np.ndarray | None:
    """The chance of every input at one draw; None for designs without one such chance."""
    if sampler.__class__.__name__ in ("ProportionalToSize", "RaoHartleyCochran"):
        weights = Weights.of(auxiliary(frame, sampler.variable))
        return np.concatenate(list(Mixture(weights, sampler.defensive).by_chunk()))
    if sampler.__class__.__name__ == "TwoStage":
        draw = sampler.draw(frame, 1, np.random.default_rng(0))
        sizes, psi = draw.constants["stratum_size"], draw.constants["stratum_probability"]
        labels = np.repeat(np.arange(len(sizes)), sizes)
        order = np.argsort(frame.variable(sampler.variable), kind="stable")  # strata are intervals of the variable
        p = np.empty(frame.size)
        p[order] = (psi / sizes)[labels]
        return p
    return None


def to_the_end(sampler: Any, draw: Draw, population: Any, budget: int, rng: np.random.Generator) -> Draw:
    """All waves of an adaptive sampler, each seeing the outcomes of those before."""
    while hasattr(sampler, "next_batch") and len(draw) < min(budget, population.frame.size):
        draw = sampler.next_batch(population.frame, budget, population.answer(draw), rng)
    return draw


if __name__ == "__main__":
    sys.exit(main())
