"""How much narrower a proxy makes the interval, and whether it still covers: good, useless and hostile proxies.

Each line: a design, the model's accuracy, labels, a proxy; then bias in standard errors of the simulation, coverage of
the 95 % interval (of the design alone behind it), and the width relative to the design alone. "two phases" asks the
judge about 2,000 of the frame's 20,000 inputs beside the drawn ones. The bars that are printed:

- simple random sampling, accuracy, 20 failures or more, a proxy of correlation 0.7 known of the whole frame: width at
  most 0.8 of that without;
- useless proxies: at most 1.03;
- every line: coverage at least 93 % (less three standard errors of the simulation).

    python tests/benchmarks/proxies.py [--repetitions 400] [--json]
    python tests/benchmarks/proxies.py --measures [--designs srs]     # all measures, side by side
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from opmon import plugins
from opmon.estimators.model_assisted import ModelAssisted
from opmon.estimators.proxies import Proxy
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Sample
from tests.benchmarks.proxies_measures import study_all, told_measure

SIZE, JUDGED = 20_000, 2_000
RATIO, USELESS, COVERAGE = 0.8, 1.03, 0.93
STRONG = ("continuous 0.7", "class 0.7")
TWO_PHASES = "two phases 0.7"
NOTHING = ("noise", "noise, 20 % ones", "rare noise")


@dataclass(frozen=True)
class Line:
    """What one proxy does to one design."""

    design: str
    accuracy: str
    labels: int
    proxy: str
    bias: float
    """In standard errors of the simulation."""
    coverage: float
    without: float
    """The coverage of the design alone."""
    width: float
    """Relative to the design alone."""

    @property
    def is_strong(self) -> bool:
        """Whether the first bar is about it."""
        return self.design == "srs" and self.proxy in STRONG and self.failures >= 19.9

    @property
    def misses(self) -> list[str]:
        """The bars that it does not meet."""
        found = []
        if self.is_strong and self.width > RATIO:
            found.append(f"width {self.width:.3f} > {RATIO}")
        if self.proxy in NOTHING and self.width > USELESS:
            found.append(f"width {self.width:.3f} > {USELESS}")
        return found

    @property
    def failures(self) -> float:
        """How many failures are expected among the labels; none of losses."""
        return self.labels * (1 - float(self.accuracy)) if self.accuracy != "losses" else 0.0


def proxies(population: Population, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Guesses for the whole frame, by name."""
    y, size = population.outcomes, len(population.outcomes)
    noise, z = rng.normal(size=size), (y - y.mean()) / y.std()
    strong = 0.7 * z + math.sqrt(1 - 0.49) * noise
    found = {"continuous 0.7": _unit(strong), "two phases 0.7": _unit(strong), "noise": rng.random(size)}
    found |= {"noise, 20 % ones": (rng.random(size) < 0.2) * 1.0, "rare noise": (rng.random(size) < 0.01) * 1.0}
    found |= {"says the reverse": _unit(-strong), "biased": 0.5 + 0.5 * _unit(strong)}
    if np.isin(y, (0.0, 1.0)).all():
        missed = rng.random(size)
        found["class 0.7"] = _flipped(y, missed, rng.random(size), 0.25)
        found["almost always right"] = np.where(y == 1, missed > 0.02, rng.random(size) < 0.005) * 1.0
        found["denies all failures"] = np.where(y == 1, 0.0, rng.random(size) < 0.1) * 1.0
    return found


def _flipped(y: np.ndarray, missed: np.ndarray, false: np.ndarray, miss: float) -> np.ndarray:
    """A second opinion that misses a quarter of the failures, with so many false ones that the correlation is 0.7."""
    shares = np.linspace(0, 0.5, 2001)
    guesses = (np.where(y == 1, missed > miss, false < share) * 1.0 for share in shares)
    return next(g for g in guesses if np.corrcoef(g, y)[0, 1] <= 0.7)


def _unit(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.min()) / (values.max() - values.min()))


def drawn(design: str, population: Population, labels: int, rng: np.random.Generator, problem: Any) -> Sample:
    """All waves of a draw, with their answers."""
    sampler = plugins.make("sampler", design)
    draw = sampler.draw(population.frame, labels, rng)
    while len(draw) < labels:
        longer = sampler.next_batch(population.frame, labels, replace(population.answer(draw), problem=problem), rng)
        if len(longer) == len(draw):
            break
        draw = longer
    return replace(population.answer(draw), problem=problem)


def study(design: str, accuracy: str, labels: int, repetitions: int, size: int = SIZE) -> Iterator[Line]:
    """All proxies under one design."""
    classifies = accuracy != "losses"
    population = classifier(size, float(accuracy), seed=11) if classifies else regressor(size, seed=11)
    problem = "classification" if classifies else "regression"
    truth, base = population.truth, plugins.make("estimator", design)
    guesses = proxies(population, np.random.default_rng(7))
    rows: dict[str, list[tuple[float, bool, float]]] = {name: [] for name in ("", *guesses)}
    for k in range(repetitions):
        rng = np.random.default_rng([k, labels])
        sample = drawn(design, population, labels, rng, problem)
        own = base.estimate(sample)
        rows[""].append((own.value - truth, own.low <= truth <= own.high, own.high - own.low))
        for name, g in guesses.items():
            proxy = Proxy.of_frame(g, sample.draw)
            if name.startswith("two phases"):
                others = rng.choice(size, JUDGED, replace=False)
                proxy = Proxy.of_sample(g[sample.draw.positions], g[others], size)
            found = ModelAssisted(base, proxy).estimate(sample)
            rows[name].append((found.value - truth, found.low <= truth <= found.high, found.high - found.low))
    _, own_held, own_width = (np.array(column) for column in zip(*rows.pop(""), strict=True))
    for name, row in rows.items():
        errors, held, width = (np.array(column) for column in zip(*row, strict=True))
        bias = errors.mean() / (errors.std(ddof=1) / math.sqrt(repetitions))
        ratio = float(np.median(width) / np.median(own_width))
        yield Line(design, accuracy, labels, name, float(bias), float(held.mean()), float(own_held.mean()), ratio)


CELLS = [
    (design, accuracy, labels)
    for design in ("srs", "ssrs", "gbs", "adaptive")
    for accuracy, labels in (("0.8", 100), ("0.8", 400), ("0.9", 200), ("0.95", 400), ("0.99", 400), ("losses", 200))
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--designs", default="srs,ssrs,gbs,adaptive")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measures", action="store_true", help="all measures (proxies_measures.py)")
    parser.add_argument("--size", type=int, default=SIZE, help="inputs of the frame, with --measures")
    options = parser.parse_args()
    if options.measures:
        for each in study_all(tuple(options.designs.split(",")), options.repetitions, options.size):
            print(json.dumps(asdict(each)) if options.json else told_measure(each), flush=True)
        return
    lines: list[Line] = []
    for design, accuracy, labels in CELLS:
        if design in options.designs.split(","):
            for line in study(design, accuracy, labels, options.repetitions):
                lines.append(line)
                print(json.dumps(asdict(line)) if options.json else told(line), flush=True)
    if not options.json:
        print(*verdict(lines, options.repetitions), sep="\n")


def told(line: Line) -> str:
    return (
        f"{line.design:9} {line.accuracy:7} {line.labels:4}  {line.proxy:20} bias {line.bias:+5.1f} s.e.  "
        f"covers {line.coverage:6.1%} (alone {line.without:6.1%})  width {line.width:5.3f}  {'; '.join(line.misses)}"
    )


def verdict(lines: Sequence[Line], repetitions: int) -> Iterator[str]:
    """Each bar, and what was measured."""
    slack = 3 * math.sqrt(COVERAGE * (1 - COVERAGE) / repetitions)
    for name, some in (
        ("correlation 0.7, srs, accuracy, 20 failures or more (0.8)", [line for line in lines if line.is_strong]),
        ("the same in two phases", [line for line in lines if line.design == "srs" and line.proxy == TWO_PHASES]),
    ):
        widths = [line.width for line in some if line.failures >= 19.9]
        if widths:
            yield f"{name}: width {sum(widths) / len(widths):.3f} on average, {max(widths):.3f} at most"
    nothing = max((line for line in lines if line.proxy in NOTHING), key=lambda line: line.width)
    yield f"useless: width {nothing.width:.3f} at most (1.03)"
    low = sum(line.coverage < COVERAGE - slack for line in lines)
    least = min(lines, key=lambda line: line.coverage)
    good = sum(line.coverage >= COVERAGE for line in lines) / len(lines)
    yield f"coverage: {good:.1%} of {len(lines)} lines at 93 % or more; least {least.coverage:.1%} ({told(least)})"
    yield f"coverage below 93 % by more than the simulation's error: {low} lines"
    yield f"bias: {max(abs(line.bias) for line in lines):.1f} s.e. of the simulation at most"


if __name__ == "__main__":
    main()
