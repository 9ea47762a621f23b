from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from opmon.estimators._counts import counted
from opmon.estimators._losses import EQUAL
from opmon.estimators.intervals import wilson
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.quantities import MEAN_SQUARED_ERROR
from opmon.types import Draw, Problem, Sample

PROBLEMS: tuple[Problem | None, ...] = ("classification", "regression", None)


def srs_sample(outcomes: list[float], frame_size: int, replacement: bool = False) -> Sample:
    constants = {"replacement": np.array(replacement)}
    return Sample(Draw("srs", frame_size, np.arange(len(outcomes)), constants=constants), np.array(outcomes))


def test_srs_worked_by_hand() -> None:
    found = SimpleRandomEstimator().estimate(srs_sample([1, 0, 0, 0], 16))
    assert found.value == 0.75
    # s² = 0.25, (1 − 4/16) · 0.25 / 4
    assert found.standard_error == pytest.approx(np.sqrt(0.75 * 0.25 / 4))


def test_srs_exact_interval_is_clopper_pearson() -> None:
    found = SimpleRandomEstimator("exact").estimate(srs_sample([1.0] * 3 + [0.0] * 17, 50, replacement=True))
    assert 1 - found.high == pytest.approx(stats.beta.ppf(0.025, 3, 18))
    assert 1 - found.low == pytest.approx(stats.beta.ppf(0.975, 4, 17))


def test_srs_wilson_interval_is_wilsons() -> None:
    found = SimpleRandomEstimator("wilson").estimate(srs_sample([1.0] * 3 + [0.0] * 17, 50, replacement=True))
    expected = stats.binomtest(3, 20).proportion_ci(method="wilson")
    assert (1 - found.high, 1 - found.low) == pytest.approx((expected.low, expected.high))


def test_srs_hypergeometric_bounds_hold_the_totals_that_are_not_rejected() -> None:
    low, high = counted(2, 20, 0.95, 60, mid=False)
    kept = [m for m in range(2, 43) if min(stats.hypergeom.sf(1, 60, m, 20), stats.hypergeom.cdf(2, 60, m, 20)) > 0.025]
    assert (low, high) == (kept[0] / 60, kept[-1] / 60)


@pytest.mark.parametrize("mid", [True, False])
def test_srs_interval_mirrors_when_right_and_wrong_swap(mid: bool) -> None:
    low, high = counted(3, 30, 0.95, 200, mid)
    assert counted(27, 30, 0.95, 200, mid) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize("n", [20, 60])
def test_srs_exact_coverage_is_at_least_nominal(n: int) -> None:
    N = 200
    for total in range(0, N + 1, 7):
        x = np.arange(max(0, n - (N - total)), min(n, total) + 1)
        bounds = np.array([counted(int(k), n, 0.95, N, mid=False) for k in x])
        holds = (bounds[:, 0] <= total / N) & (total / N <= bounds[:, 1])
        assert stats.hypergeom.pmf(x, N, total, n)[holds].sum() >= 0.95 - 1e-9


def test_srs_census_of_squared_errors_has_no_width() -> None:
    found = SimpleRandomEstimator().estimate(srs_sample([0.5, 1.5, 4.0], 3))
    assert found.low == found.value == found.high == 2.0
    assert found.quantity == MEAN_SQUARED_ERROR


def losses(values: list[float], frame_size: int = 10_000, problem: Problem | None = "regression") -> Sample:
    return replace(srs_sample(values, frame_size), problem=problem)


@pytest.mark.parametrize("loss", [0.25, 0.1, 4.0, 0.0])
def test_srs_equal_squared_errors_say_nothing_of_larger_ones(loss: float) -> None:
    found = SimpleRandomEstimator().estimate(losses([loss] * 20))
    assert found.value == pytest.approx(loss)
    assert found.high == np.inf
    assert found.notes == (EQUAL,)
    # as many as a share 1 of 20 draws can hide are taken to be 0
    least = wilson(1.0, 20, frame_size=10_001).low * loss
    assert found.low == pytest.approx(least, abs=1e-3)


def test_srs_equal_squared_errors_of_the_whole_frame_have_no_width() -> None:
    found = SimpleRandomEstimator().estimate(losses([0.1] * 20, 20))
    assert found.low == pytest.approx(found.value) == pytest.approx(found.high)
    assert not found.notes


def test_srs_regression_whose_errors_are_0_or_1_is_none_of_a_classifier() -> None:
    y = [1.0] * 5 + [0.0] * 45
    share, loss, guessed = (SimpleRandomEstimator().estimate(losses(y, 3000, of)) for of in PROBLEMS)
    assert (share.method, loss.method) == ("srs/mid-p", "srs/hall")
    assert guessed == share
    assert loss.value == pytest.approx(1 - share.value)


def test_srs_regression_on_whole_numbers_may_lose_more_than_one_each() -> None:
    y = [1.0] * 48 + [0.0] * 2
    share, loss = (SimpleRandomEstimator().estimate(losses(y, problem=of)) for of in PROBLEMS[:2])
    assert loss.high > 1
    assert share.low >= 0


def test_srs_draws_without_an_answer_are_told() -> None:
    found = SimpleRandomEstimator().estimate(srs_sample([0.0, np.nan, 1.0, np.nan, 0.0], 100))
    assert found.notes == ("2 of 5 draws have no answer; the others stand in",)
    assert not SimpleRandomEstimator().estimate(srs_sample([0.0, 1.0], 100)).notes


def test_srs_single_squared_error_has_no_upper_bound_on_the_loss() -> None:
    found = SimpleRandomEstimator().estimate(srs_sample([0.3], 100))
    assert found.high == np.inf
    assert found.notes
