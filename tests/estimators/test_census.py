"""A census is exact, or bounded by what it lacks."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.estimators.census import census


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
