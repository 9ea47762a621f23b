"""Intervals of proportions and losses: known values, identities, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from opmon.errors import InputError
from opmon.estimators._skewed_score import skewed_score_bounds
from opmon.estimators._weighted_score import score_bounds
from opmon.estimators.intervals import wilson


def test_wilson_known_value() -> None:
    assert wilson(0.1, 50)[:2] == pytest.approx((0.043476, 0.213602), abs=1e-5)


def test_wilson_of_a_census_has_no_width() -> None:
    assert wilson(0.3, 40, frame_size=40)[:2] == (0.3, 0.3)


def test_finite_population_narrows_wilson() -> None:
    wide, narrow = wilson(0.3, 40), wilson(0.3, 40, frame_size=60)
    assert narrow.high - narrow.low < 0.7 * (wide.high - wide.low)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_level_out_of_range_is_an_error(level: float) -> None:
    with pytest.raises(InputError, match=r"0\.95"):
        wilson(0.3, 50, level)


@pytest.mark.parametrize("n", [50, 200])
def test_skewed_score_covers_one_cell_at_any_rate(n: int) -> None:
    one = np.ones(1)
    bounds = np.array([skewed_score_bounds(one, n * one, k * one, 0.95, 0.965) for k in range(n + 1)])
    for p in np.concatenate([np.linspace(0.3, 12, 40) / n, np.linspace(0.1, 0.5, 9)]):
        inside = (bounds[:, 0] <= p) & (p <= bounds[:, 1])
        assert binom.pmf(np.arange(n + 1), n, p) @ inside > 0.94


def test_skewed_score_covers_many_small_cells() -> None:
    rng = np.random.default_rng(0)
    share = np.geomspace(1, 8, 12)
    share /= share.sum()
    rates = np.linspace(0.6, 0.02, 12)
    failures = rng.binomial(5, rates, size=(1000, 12))
    found = [skewed_score_bounds(share, np.full(12, 5.0), x, 0.95) for x in failures]
    covered = np.mean([low <= share @ rates <= high for low, high in found])
    assert covered > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize("cells", [1, 2, 7])
@pytest.mark.parametrize("draws", [1_000, 2_000, 20_000, 1_000_000])
def test_many_draws_without_a_failure_leave_room_for_a_few(cells: int, draws: int) -> None:
    """By the rule of three about three failures are possible, however many draws there are; never none."""
    share, n, none = np.full(cells, 1 / cells), np.full(cells, draws / cells), np.zeros(cells)
    for bounds in (skewed_score_bounds(share, n, none, 0.95), score_bounds(share, n, none, 0.95)):
        assert bounds[0] == 0
        assert 3 < draws * bounds[1] < 4.2
    _, high = score_bounds(share, n, none, 0.95)
    assert high == pytest.approx(wilson(0.0, draws).high, rel=0.03)


def test_skewed_score_exchanges_right_and_wrong() -> None:
    A, n, x = np.array([0.7, 0.3]), np.array([12.0, 20.0]), np.array([1.0, 9.0])
    low, high = skewed_score_bounds(A, n, x, 0.95)
    assert skewed_score_bounds(A, n, n - x, 0.95) == pytest.approx((1 - high, 1 - low))
