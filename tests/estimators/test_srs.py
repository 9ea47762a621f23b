from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from opmon.estimators.proportions_core import counted
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.types import Draw, Sample


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
    assert found.low == found.value == found.high == -1.0


def test_srs_single_squared_error_has_no_upper_bound_on_the_loss() -> None:
    found = SimpleRandomEstimator().estimate(srs_sample([0.3], 100))
    assert found.low == -np.inf
    assert found.notes
