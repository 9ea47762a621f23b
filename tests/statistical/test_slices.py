"""Intervals of slices hold, none is called worse for nothing too often, and promised draws leave the whole unbiased."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opmon.estimators.ratios import slice_accuracy
from opmon.estimators.slices import Estimating, behind
from opmon.plugins import make
from opmon.quantities import ACCURACY
from opmon.testing.populations import classifier
from opmon.types import Frame, Sample
from opmon.types.frame import Reserved

SIZE = 4000
FRAME = dict(classifier(SIZE, accuracy=0.9, seed=4).frame.variables)


def slices() -> dict[str, np.ndarray]:
    """Of two columns that overlap, of 10 to 60 % of the inputs."""
    rng = np.random.default_rng(3)
    country, age = rng.choice(["DE", "FR", "US"], SIZE, p=[0.6, 0.3, 0.1]), rng.integers(0, 3, SIZE)
    return {f"country {name}": country == name for name in ("DE", "FR", "US")} | {
        f"age {band}": age == band for band in range(3)
    }


def drawn(sampler: str, outcomes: np.ndarray, budget: int, seed: int, reserved: Reserved | None = None) -> Sample:
    rng, frame = np.random.default_rng([seed, budget]), Frame(FRAME, reserved=reserved)
    chosen = make("sampler", sampler)
    draw = chosen.draw(frame, budget, rng)
    while len(draw) < budget:
        draw = chosen.next_batch(frame, budget, Sample(draw, outcomes[draw.positions], "classification"), rng)
    return Sample(draw, outcomes[draw.positions], "classification")


def estimating(sample: Sample) -> Estimating:
    """The accuracy of parts of the frame."""
    estimator: Any = make("estimator", sample.draw.design)
    return lambda own, level: slice_accuracy(estimator, sample, own, "slice", level)


@pytest.mark.parametrize(("sampler", "repetitions"), [("srs", 150), ("adaptive", 60)])
def test_intervals_hold_and_few_are_called_worse_for_nothing(sampler: str, repetitions: int) -> None:
    members = slices()
    outcomes = (np.random.default_rng(5).permutation(SIZE) < 0.15 * SIZE).astype(np.float64)
    truth = {name: 1 - outcomes[own].mean() for name, own in members.items()}
    covered, called = [], 0
    for seed in range(repetitions):
        sample = drawn(sampler, outcomes, 200, seed)
        inside, of = {name: own[sample.draw.positions] for name, own in members.items()}, estimating(sample)
        for name, own in inside.items():
            found = of(own, 0.95)
            covered.append(found.low <= truth[name] <= found.high)
        called += bool(behind(of, inside, sample.answered, ACCURACY))
    assert np.mean(covered) > 0.93
    # with a probability of 5 % a round, more than this comes by chance once in a thousand studies
    assert called <= 0.05 * repetitions + 3.1 * np.sqrt(0.05 * 0.95 * repetitions)


def test_a_slice_that_is_worse_is_found() -> None:
    members = slices()
    rng = np.random.default_rng(6)
    outcomes = (rng.random(SIZE) < np.where(members["country US"], 0.45, 0.05)).astype(np.float64)
    found = []
    for seed in range(20):
        sample = drawn("srs", outcomes, 300, seed)
        inside = {name: own[sample.draw.positions] for name, own in members.items()}
        found += behind(estimating(sample), inside, sample.answered, ACCURACY)
    assert found.count("country US") >= 18
    assert set(found) - {"country US"} <= {"age 0", "age 1", "age 2"}


@pytest.mark.parametrize(("sampler", "repetitions"), [("srs", 400), ("adaptive", 150)])
def test_promised_draws_are_made_and_the_whole_stays_unbiased(sampler: str, repetitions: int) -> None:
    rng = np.random.default_rng(8)
    part = (rng.random(SIZE) < 0.03).astype(np.int16)
    outcomes = (rng.random(SIZE) < np.where(part == 1, 0.4, 0.08)).astype(np.float64)
    values, held, reserved = [], 0, Reserved(part, (0, 30))
    for seed in range(repetitions):
        sample = drawn(sampler, outcomes, 120, seed, reserved)
        assert int((part[sample.draw.positions] == 1).sum()) >= 30
        one = make("estimator", sample.draw.design).estimate(sample)
        values.append(one.value)
        held += one.low <= 1 - outcomes.mean() <= one.high
    error = np.std(values) / np.sqrt(repetitions)
    assert abs(np.mean(values) - (1 - outcomes.mean())) < 4 * error
    assert held / repetitions > 0.92
