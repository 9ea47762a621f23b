"""Measures: bias, error and coverage over repeated draws of frames whose truth is known.

    python tests/benchmarks/measures.py --json [--data census,fraud] [--samplers srs,adaptive] [--budgets 100,400]
                                        [--measures recall,f1] [--repetitions 400] [--folder nannyml/datasets/data]
                                        [--jobs 2]
    python tests/benchmarks/measures.py --speed

One object per line: a measure of one data set by one sampler at one budget. ``bias`` is that of the mean of the
estimates, ``error`` its Monte Carlo standard error, ``rmse`` the root of the mean squared error, ``half_width`` the
median of half the interval's width, ``undefined`` the share of draws that say nothing of the measure, such as draws
without any input of a rare class: these do not count for the others. Without --json, what falls short of the bars:
coverage of 93 % in 95 % of rows, and bias within 4 Monte Carlo standard errors or 0.2 standard errors of an estimate.
``--jobs`` processes work side by side, each on one data set, sampler and budget at a time; rows are the same, in the
same order, however many there are. ``--speed`` times the estimates of one round of a million inputs: 12 measures of
the whole and of 40 slices. Census, housing, cards and cars come from PyPI's nannyml, downloaded once; the others are
simulated.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import measures_data
from measures_data import Case

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators.measured import measured
from opmon.samplers._checks import ByVariable
from opmon.types import Draw

SAMPLERS = ("srs", "ssrs", "sups", "adaptive")
BUDGETS = (100, 200, 400, 800)
DATA = (*measures_data.DOWNLOADED, *measures_data.SIMULATED)
Row = dict[str, object]


@dataclass(frozen=True)
class Cell:
    """What one process computes at a time: the measures of one data set by one sampler at one budget."""

    data: str
    sampler: str
    budget: int
    repetitions: int
    only: tuple[str, ...] = ()
    folder: Path | None = None

    def rows(self) -> list[Row]:
        return list(rows(_case(self.data, self.folder), self.sampler, self.budget, self.repetitions, self.only))


_case = cache(measures_data.case)


def draws(case: Case, sampler: str, budget: int, seeds: Iterable[int]) -> Iterator[Draw]:
    """All waves of the draw of each seed; what does not depend on it is prepared once."""
    chosen = plugins.make("sampler", sampler)
    first = chosen.prepare(case.frame, budget) if isinstance(chosen, ByVariable) else None
    for seed in seeds:
        rng = np.random.default_rng([seed, budget])
        draw = chosen.draw(case.frame, budget, rng) if first is None else first(rng)
        while len(draw) < budget:
            draw = chosen.next_batch(case.frame, budget, case.answer(draw)[0], rng)
        yield draw


def rows(case: Case, sampler: str, budget: int, repetitions: int, only: Sequence[str] = ()) -> Iterator[Row]:
    """One row per measure."""
    wanted = {name: one for name, one in case.measures.items() if not only or name in only}
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in wanted}
    for draw in draws(case, sampler, budget, range(repetitions)):
        sample, known = case.answer(draw)
        estimator = plugins.make("estimator", sample.draw.design)
        for name, measure in wanted.items():
            try:
                estimate = measured(estimator, sample, known, measure, case.unit)
            except InputError:
                continue
            found[name].append((estimate.value, estimate.low, estimate.high))
    for name in wanted:
        yield {"data": case.name, "measure": name, "sampler": sampler, "budget": budget} | summary(
            np.array(found[name]).reshape(-1, 3), case.truths[name], repetitions
        )


def summary(found: np.ndarray, truth: float, repetitions: int) -> Row:
    value, low, high = found.T
    count = len(value)
    if count < 2:
        return {"truth": truth, "undefined": 1 - count / repetitions}
    slack = 1e-9 * abs(truth)
    return {
        "bias": float(value.mean() - truth),
        "error": float(value.std(ddof=1) / math.sqrt(count)),
        "rmse": float(np.sqrt(((value - truth) ** 2).mean())),
        "coverage": float(((low <= truth + slack) & (high >= truth - slack)).mean()),
        "missed_below": float((low > truth + slack).mean()),
        "missed_above": float((high < truth - slack).mean()),
        "half_width": float(np.median((high - low) / 2)),
        "truth": truth,
        "undefined": 1 - count / repetitions,
    }


def falls_short(row: Row) -> str | None:
    """What a row falls short of, if anything."""
    if "coverage" not in row:
        return "undefined on all draws"
    bias, error, rmse, coverage = (float(row[name]) for name in ("bias", "error", "rmse", "coverage"))  # type: ignore[arg-type]
    told = []
    if coverage < 0.93:
        told.append(f"coverage {coverage:.3f}")
    if abs(bias) > 4 * error and abs(bias) > 0.2 * math.sqrt(max(rmse**2 - bias**2, 0.0)):
        told.append(f"bias {bias / math.sqrt(max(rmse**2 - bias**2, 1e-300)):+.2f} s.e.")
    return ", ".join(told) or None


def speed(size: int = 1_000_000, budget: int = 800, slices: int = 40) -> Row:
    """Seconds of a process for 12 measures of the whole frame and of slices."""
    case = measures_data.fraud(size)
    draw = next(draws(case, "adaptive", budget, [0]))
    sample, known = case.answer(draw)
    estimator = plugins.make("estimator", draw.design)
    measures = list(case.measures.values())[:12]
    column = np.random.default_rng(0).integers(0, slices // 2, (2, size))[:, draw.positions]
    members = [column[k % 2] == k // 2 for k in range(slices)]
    begun, count = time.process_time(), 0
    for part in (None, *members):
        for measure in measures:
            try:
                measured(estimator, sample, known, measure, members=part)
            except InputError:  # none of the rare class in the slice
                continue
            count += 1
    seconds = time.process_time() - begun
    return {"inputs": size, "labels": budget, "measures": len(measures), "slices": slices, "estimates": count} | {
        "seconds": round(seconds, 2)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--samplers", default=",".join(SAMPLERS))
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--measures", default="")
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--folder", type=Path, help="nannyml's datasets/data, where it was downloaded before")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    if options.speed:
        print(json.dumps(speed()))
        return
    listed = [each.split(",") if each else [] for each in (options.data, options.samplers, options.budgets)]
    only = tuple(filter(None, options.measures.split(",")))
    cells = [
        Cell(data, sampler, int(budget), options.repetitions, only, options.folder)
        for data, sampler, budget in product(*listed)
    ]
    short, count = [], 0
    for row in computed(cells, options.jobs):
        count += 1
        why = falls_short(row)
        if options.json:
            print(json.dumps(row), flush=True)
        elif why:
            where = " ".join(str(row[key]) for key in ("data", "measure", "sampler", "budget"))
            print(f"{where}: {why}", flush=True)
        if why:
            short.append(why)
    if not options.json:
        covered = sum("coverage" not in why for why in short) + count - len(short)
        print(f"{covered} of {count} rows cover 93 % or more; {sum('bias' in why for why in short)} are biased")


def computed(cells: Sequence[Cell], jobs: int) -> Iterator[Row]:
    """The rows of all cells, in their order, as they come."""
    if jobs == 1:
        for cell in cells:
            yield from cell.rows()
        return
    for name in {cell.data: cell.folder for cell in cells}.items():
        _case(*name)  # read, and downloaded, once for all
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        for rows_of_cell in pool.map(Cell.rows, cells):
            yield from rows_of_cell


if __name__ == "__main__":
    main()
