"""Draws that aim at a cost matrix or at the mean absolute error, beside simple random sampling.

    python tests/benchmarks/aim.py [--repetitions 200] [--labels 300] [--cost] [--mae] [--measures] [--data census]

Six data sets for each. Cost: three simulated classifiers (one too sure of itself, one whose scores say nothing of the
dear mistakes), car loans and credit cards and the US census as the wheel of nannyml has them, each with a matrix in
which one mistake is ten times as dear. Absolute errors: three simulated regressions with variables that foretell the
size of errors well, partly and not at all, used cars from nannyml (the variables are the inputs), house prices that
simulate a long tail, and the published steering angles of ``--published`` where that folder is named, else simulated.
``--measures`` goes through all others, each the aim in its turn, on the data of ``aim_measures.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

import aim_measures
import tomography_data
from aiming import Line, Population, compared

from opmon.abc import Measure
from opmon.measures.cost import Cost
from opmon.measures.mean_absolute_error import MeanAbsoluteError

Floats = NDArray[np.float64]
DEAR = 10.0
MOST = 60_000
"""Inputs of a data set that are looked at."""


def of_scores(name: str, chances: Floats, truth: NDArray[np.str_], classes: tuple[str, ...]) -> Population:
    said = np.array(classes)[chances.argmax(axis=1)]
    return Population(name, truth, said, classes, chances, {"confidence": (1 - chances.max(axis=1)).astype(np.float32)})


def simulated(name: str, seed: int, *, sure: float = 1.0, noise: float = 0.0, count: int = 3) -> Population:
    """Classes by their log odds; told are such that are ``sure`` times too large, with ``noise`` beside."""
    rng = np.random.default_rng(seed)
    classes = tuple(f"c{number}" for number in range(count))
    odds = rng.normal(size=(20_000, count)) * 2.5 + np.linspace(0.5, -0.5, count)
    right, told = _shares(odds), _shares(sure * (odds + noise * rng.normal(size=odds.shape)))
    truth = np.array(classes)[(right.cumsum(axis=1) < rng.random((len(odds), 1))).sum(axis=1).clip(max=count - 1)]
    return of_scores(name, told, truth, classes)


def _shares(odds: Floats) -> Floats:
    weight = np.exp(odds - odds.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def of_costs(classes: tuple[str, ...]) -> Cost:
    """A mistake costs 1, to overlook the last class ten times as much."""
    names = {name: DEAR if name == classes[-1] else 1.0 for name in classes}
    return Cost({name: {other: dear for other in classes if other != name} for name, dear in names.items()})


def nannyml(name: str) -> Path:
    folder = tomography_data.cache_folder()
    return tomography_data.unpacked("nannyml", f"nannyml/datasets/data/{name}", folder)


def of_two(name: str, file: str, chance: str, truth: str) -> Population:
    import pandas as pd

    path = nannyml(file)
    table = (pd.read_parquet(path) if path.suffix == ".pq" else pd.read_csv(path)).dropna(subset=[truth])[:MOST]
    second = table[chance].to_numpy(dtype=np.float64)
    told = np.array(["0", "1"])[table[truth].astype(int).to_numpy()]
    return of_scores(name, np.stack([1 - second, second], axis=1), told, ("0", "1"))


def cards() -> Population:
    import pandas as pd

    table = pd.read_csv(nannyml("mc_reference.csv"))
    classes = ("prepaid_card", "highstreet_card", "upmarket_card")
    chances = table[[f"y_pred_proba_{name}" for name in classes]].to_numpy(dtype=np.float64)
    return of_scores(
        "credit cards", chances / chances.sum(axis=1, keepdims=True), table["y_true"].to_numpy(str), classes
    )


def classifiers() -> Iterator[Population]:
    yield simulated("simulated", 1)
    yield simulated("simulated, twice too sure", 2, sure=2.0)
    yield simulated("simulated, noisy scores", 3, noise=2.0)
    yield of_two("car loans", "synthetic_car_loan_reference.csv", "y_pred_proba", "repaid")
    yield cards()
    yield of_two("US census", "employment_MA_reference.pq", "predicted_probability", "employed")


def of_errors(name: str, seed: int, tells: float, tail: float = 1.0) -> Population:
    """Errors of a size that one of two variables tells: with correlation ``tells`` of logarithms."""
    rng = np.random.default_rng(seed)
    size = np.exp(tail * rng.normal(size=20_000))
    told = np.exp(tells * np.log(size) + np.sqrt(1 - tells**2) * rng.normal(size=len(size)))
    truth = rng.normal(size=len(size)) * 10
    predicted = truth + size * rng.normal(size=len(size))
    variables = {"told": told.astype(np.float32), "noise": rng.random(len(size)).astype(np.float32)}
    return Population(name, truth, predicted, variables=variables)


def cars() -> Population:
    import pandas as pd

    table = pd.read_csv(nannyml("regression_synthetic_reference.csv"))[:MOST]
    names = ("car_age", "km_driven", "price_new", "accident_count", "y_pred")
    variables = {name: table[name].to_numpy(np.float32) for name in names}
    truth, predicted = (table[name].to_numpy(np.float64) for name in ("y_true", "y_pred"))
    return Population("used cars", truth, predicted, variables={n: v - min(v.min(), 0) for n, v in variables.items()})


def regressions(published: Path | None) -> Iterator[Population]:
    yield of_errors("errors told well", 1, 0.9)
    yield of_errors("errors told partly", 2, 0.6)
    yield of_errors("errors not told", 3, 0.0, tail=0.5)
    yield of_errors("long tails", 4, 0.8, tail=1.3)
    yield cars()
    if published is None:
        yield of_errors("errors told a little", 5, 0.4)
    else:
        from subjects import read_subject

        subject = read_subject(published / "deepsample" / "Dave_orig.csv", 0.5)
        variables = {name: np.asarray(values) for name, values in subject.population.frame.variables.items()}
        errors = np.sqrt(subject.population.outcomes)
        yield Population("steering angles", errors, np.zeros(len(errors)), variables=variables)


def shown(
    populations: Iterator[Population], measure: Callable[[Population], Measure], options: argparse.Namespace
) -> None:
    lines: list[Line] = []
    for population in populations:
        own = measure(population)
        [line] = compared(population, own, [own], options.labels, options.repetitions)
        lines.append(line)
        print(told(line), flush=True)
    print(summed_up(lines), flush=True)


def told(line: Line) -> str:
    return (
        f"{line.data:28} {line.measure:34} {line.truth:9.4g} {line.bias:6.1f} {line.rmse:9.3g} "
        f"{line.error_ratio:6.2f} {line.coverage:8.3f} {line.width_ratio:6.2f}"
    )


def summed_up(lines: Sequence[Line]) -> str:
    ratios, covered = [line.error_ratio for line in lines], [line.coverage for line in lines]
    return (
        f"{'':28} RMSE × {np.mean(ratios):.2f} on average, {max(ratios):.2f} at worst, above 1.05 in "
        f"{sum(ratio > 1.05 for ratio in ratios)} of {len(lines)}; coverage {min(covered):.3f} at least, below 0.93 in "
        f"{sum(each < 0.93 for each in covered)}"
    )


def all_measures(options: argparse.Namespace) -> None:
    lines: list[Line] = []
    for population, measures in aim_measures.every():
        if options.data and not any(name in population.name for name in options.data.split(",")):
            continue
        for measure in measures:
            [line] = compared(population, measure, [measure], options.labels, options.repetitions)
            lines.append(line)
            print(told(line), flush=True)
    print(summed_up(lines), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--labels", type=int, default=300)
    parser.add_argument("--published", type=Path)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--mae", action="store_true")
    parser.add_argument("--measures", action="store_true")
    parser.add_argument("--data", help="only populations with one of these in their names, with --measures")
    options = parser.parse_args()
    both = options.cost == options.mae and not options.measures
    print(f"{options.labels} labels, {options.repetitions} repetitions; × is relative to simple random sampling")
    print(f"{'data':28} {'measure':34}     truth bias/se      RMSE      × coverage width ×")
    if both or options.cost:
        shown(classifiers(), lambda population: of_costs(population.classes), options)
    if both or options.mae:
        shown(regressions(options.published), lambda _: MeanAbsoluteError(), options)
    if options.measures:
        all_measures(options)


if __name__ == "__main__":
    main()
