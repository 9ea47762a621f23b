"""A census is exact, or bounded by what it lacks."""

from __future__ import annotations

import numpy as np
import pytest

from opmon import plugins
from opmon.estimators.census import census
from opmon.estimators.counted import of_measure
from opmon.quantities import ACCURACY
from opmon.types import Labelled


@pytest.mark.parametrize("problem", ["classification", "regression"])
def test_a_census_is_the_mean_over_all_inputs(problem) -> None:
    losses = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
    found = census(losses, problem)
    assert found.value == pytest.approx(0.6 if problem == "classification" else 0.4)
    assert (found.low, found.high, found.n, found.response) == (found.value, found.value, 5, 1.0)


def test_of_a_log_that_is_a_sample_the_interval_is_for_all_of_the_traffic() -> None:
    losses = np.zeros(400)
    losses[:40] = 1
    found = census(losses, "classification", sampled=True)
    assert found.low < 0.88 < found.value == 0.9 < 0.92 < found.high
    assert "sample of the traffic" in found.notes[-1]
    assert census(losses, "regression", sampled=True) is None


def test_a_few_without_a_truth_bound_a_share_and_not_an_error() -> None:
    losses = np.zeros(2000)
    losses[:100] = 1
    losses[-2:] = np.nan
    found = census(losses, "classification")
    assert (found.low, found.high) == (pytest.approx(1 - 102 / 2000), pytest.approx(1 - 100 / 2000))
    assert found.value == pytest.approx(1 - 100 / 1998)
    assert "2 inputs of 2,000" in found.notes[0]
    assert census(losses, "regression") is None
    losses[-3] = np.nan
    assert census(losses, "classification") is None


@pytest.mark.parametrize("inputs", [60, 2000])
def test_an_input_that_a_measure_counts_twice_tells_no_more_than_one(inputs: int) -> None:
    """Micro F1 of single labels is the accuracy, and so is its interval."""
    rng = np.random.default_rng(9)
    truth = rng.choice(["a", "b", "c"], inputs)
    said = np.where(rng.random(inputs) < 0.8, truth, rng.choice(["a", "b", "c"], inputs))
    rows, all_of_them = Labelled(np.ones(inputs, dtype=bool), truth, said, None, ("a", "b", "c")), np.ones(inputs, bool)
    found = [
        of_measure(rows, plugins.make("measure", kind, given), ACCURACY).by_chance(all_of_them, 0.95)
        for kind, given in (("accuracy", {}), ("f1", {"average": "micro"}))
    ]
    assert [(each.low, each.high) for each in found[:1]] == [pytest.approx((each.low, each.high)) for each in found[1:]]


def test_the_chance_in_f1_of_a_class_covers() -> None:
    rng, inside, times = np.random.default_rng(10), 0, 400
    measure = plugins.make("measure", "f1", {"class": "fraud"})
    for _ in range(times):
        fraud = rng.random(800) < 0.2
        said = np.where(rng.random(800) < np.where(fraud, 0.7, 0.08), "fraud", "ok")
        rows = Labelled(np.ones(800, dtype=bool), np.where(fraud, "fraud", "ok"), said, None, ("fraud", "ok"))
        found = of_measure(rows, measure, ACCURACY).by_chance(np.ones(800, bool), 0.95)
        inside += found.low <= 2 * 0.2 * 0.7 / (0.2 + 0.2 * 0.7 + 0.8 * 0.08) <= found.high
    assert abs(inside / times - 0.95) < 3 * (0.95 * 0.05 / times) ** 0.5


def test_where_nothing_is_right_or_all_is_the_interval_has_a_width() -> None:
    for said in ("a", "b"):
        rows = Labelled(np.ones(50, dtype=bool), np.full(50, "a"), np.full(50, said), None, ("a", "b"))
        found = of_measure(rows, plugins.make("measure", "f1", {"average": "micro"}), ACCURACY)
        told = found.by_chance(np.ones(50, bool), 0.95)
        assert 0.05 < told.high - told.low < 0.1
