"""Measures under several designs: the mean of estimates is right, and intervals cover; the benchmark in small."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import binom

from opmon import plugins
from opmon.abc import Measure
from opmon.estimators.measured import measured
from opmon.testing.measures import made_up
from opmon.types import Frame, Labelled, Problem, Sample

REPETITIONS, BUDGET, SIZE = 40, 200, 2000
FRAMES = {problem: made_up(problem, ("a", "b"), SIZE) for problem in ("classification", "regression")}
CASES: list[tuple[Problem, str, dict[str, object]]] = [
    ("classification", "recall", {"class": "a"}),
    ("classification", "f1", {"class": "a"}),
    ("classification", "auc", {"class": "a"}),
    ("classification", "brier", {}),
    ("classification", "cost", {"matrix": {"a": {"b": 5.0}, "b": {"a": 1.0}}}),
    ("regression", "mean_absolute_error", {}),
    ("regression", "bias", {}),
    ("regression", "r_squared", {}),
]


def suspicion(rows: Labelled) -> np.ndarray:  # type: ignore[type-arg]
    if rows.scores is not None:
        return np.asarray(1 - rows.scores.max(axis=1))
    return np.asarray(np.exp(0.3 * np.random.default_rng(0).normal(size=len(rows))))


def samples(problem: Problem, name: str) -> Iterator[tuple[Sample, Labelled]]:
    rows = FRAMES[problem]
    frame = Frame({"confidence": suspicion(rows)})
    wrong = rows.truth != rows.predicted if problem == "classification" else (rows.truth - rows.predicted) ** 2
    losses = np.asarray(wrong, dtype=np.float64)
    sampler = plugins.make("sampler", name)
    for seed in range(REPETITIONS):
        rng = np.random.default_rng(seed)
        draw = sampler.draw(frame, BUDGET, rng)
        while len(draw) < BUDGET:
            draw = sampler.next_batch(frame, BUDGET, Sample(draw, losses[draw.positions], problem), rng)
        yield Sample(draw, losses[draw.positions], problem), rows.only(draw.positions)


@pytest.mark.parametrize("design", ["srs", "ssrs", "sups", "adaptive"])
@pytest.mark.parametrize("problem", ["classification", "regression"])
def test_measures_are_right_on_average_and_their_intervals_cover(problem: Problem, design: str) -> None:
    measures: dict[str, Measure] = {
        name: plugins.make("measure", name, given) for of, name, given in CASES if of == problem
    }
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in measures}
    for sample, rows in samples(problem, design):
        estimator = plugins.make("estimator", sample.draw.design)
        for name, measure in measures.items():
            estimate = measured(estimator, sample, rows, measure)
            found[name].append((estimate.value, estimate.low, estimate.high))
    frame = FRAMES[problem]
    for name, measure in measures.items():
        value, low, high = np.array(found[name]).T
        truth = measure.value(frame, np.full(SIZE, 1 / SIZE))
        spread = float(value.std(ddof=1))
        assert abs(value.mean() - truth) < (0.2 + 4 / math.sqrt(REPETITIONS)) * spread, name
        covered = int(((low <= truth) & (truth <= high)).sum())
        assert covered >= binom.ppf(1e-4, REPETITIONS, 0.94), f"{name}: {covered} of {REPETITIONS}"


@pytest.mark.parametrize("gap", [0.0, 0.015, 0.1])
def test_calibration_error_is_right_on_average_whatever_the_gap(gap: float) -> None:
    rng = np.random.default_rng(4)
    size, repetitions = 100_000, 500
    sure = rng.uniform(0.5, 0.99, size)
    truth = np.where(rng.random(size) < sure - gap, "a", "b")
    rows = Labelled(np.ones(size, np.bool_), truth, np.full(size, "a"), np.column_stack((sure, 1 - sure)), ("a", "b"))
    measure = plugins.make("measure", "calibration_error", {})
    sampler, estimator = plugins.make("sampler", "srs"), plugins.make("estimator", "srs")
    frame, found = Frame({}, size=size), []
    for seed in range(repetitions):
        draw = sampler.draw(frame, BUDGET, np.random.default_rng(seed))
        one = measured(estimator, Sample(draw, np.zeros(BUDGET), "classification"), rows.only(draw.positions), measure)
        found.append((one.value, one.low, one.high))
    value, low, high = np.array(found).T
    real = measure.value(rows, np.full(size, 1 / size))
    assert abs(value.mean() - real) < (0.2 + 4 / math.sqrt(repetitions)) * value.std(ddof=1)
    assert ((low <= real) & (real <= high)).mean() >= 0.93


def test_a_log_loss_whose_dearest_failures_were_not_drawn_is_bounded_all_the_same() -> None:
    """1 % is fraud; nearly all failures are drawn where the model doubts, and few inputs of less doubt fail dearly."""
    rng, size = np.random.default_rng(1), 20_000
    fraud = rng.permutation(size) < size // 100
    chance = 1 / (1 + np.exp(-(rng.normal(size=size) * 1.4 + np.where(fraud, 0.8, -5.0))))
    truth, said = np.where(fraud, "fraud", "other"), np.where(chance > 0.5, "fraud", "other")
    scores = np.column_stack((chance, 1 - chance))
    rows = Labelled(np.ones(size, np.bool_), truth, said, scores, ("fraud", "other"))
    frame, wrong = Frame({"confidence": np.minimum(chance, 1 - chance)}, predictions=said), (truth != said) * 1.0
    measure, found = plugins.make("measure", "log_loss", {}), []
    sampler, estimator = plugins.make("sampler", "adaptive"), plugins.make("estimator", "adaptive")
    for seed in range(80):
        rng = np.random.default_rng([seed, 800])
        draw = sampler.draw(frame, 800, rng)
        while len(draw) < 800:
            draw = sampler.next_batch(frame, 800, Sample(draw, wrong[draw.positions], "classification"), rng)
        sample = Sample(draw, wrong[draw.positions], "classification")
        found.append(measured(estimator, sample, rows.only(draw.positions), measure))
    real = measure.value(rows, np.full(size, 1 / size))
    assert np.mean([one.low <= real <= one.high for one in found]) >= 0.95
    assert np.median([one.high - one.low for one in found]) < 0.35 * real
