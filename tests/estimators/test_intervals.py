"""Intervals of proportions and losses: known values, identities, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from opmon.errors import InputError
from opmon.estimators.intervals import (
    clopper_pearson,
    losses,
    stratified,
    weight_profile,
    weighted,
    wilson,
)
from opmon.estimators.skewed_score_core import skewed_score_bounds


def test_wilson_known_value() -> None:
    assert wilson(0.1, 50)[:2] == pytest.approx((0.043476, 0.213602), abs=1e-5)


def test_wilson_of_a_census_has_no_width() -> None:
    assert wilson(0.3, 40, frame_size=40)[:2] == (0.3, 0.3)


def test_finite_population_narrows_wilson() -> None:
    wide, narrow = wilson(0.3, 40), wilson(0.3, 40, frame_size=60)
    assert narrow.high - narrow.low < 0.7 * (wide.high - wide.low)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.37])
def test_clopper_pearson_never_covers_less_than_its_level(p: float) -> None:
    found = [clopper_pearson(k, 60) for k in range(61)]
    inside = [low <= p <= high for low, high, _ in found]
    assert binom.pmf(np.arange(61), 60, p) @ inside >= 0.95


@pytest.mark.parametrize("failures", [0, 3, 25, 50])
def test_one_stratum_is_near_wilson(failures: int) -> None:
    one = np.ones(1)
    found = stratified(one, 50 * one, failures / 50 * one)
    assert found[:2] == pytest.approx(wilson(failures / 50, 50)[:2], abs=0.02)


def test_stratum_nobody_saw_may_hold_anything() -> None:
    found = stratified(np.array([0.9, 0.1]), np.array([60.0, 0.0]), np.array([0.0, 0.0]))
    assert found.high >= 0.1


def test_equal_weights_are_like_simple_random_sampling() -> None:
    y = np.repeat([1.0, 0.0], [12, 48])
    low, high, _ = weighted(y, np.ones(60), profile=weight_profile(np.ones(1000)))
    assert (low, high) == pytest.approx(wilson(0.2, 60)[:2], abs=0.02)


def test_lightly_sampled_bulk_widens_the_interval() -> None:
    weights_of_all = np.r_[np.full(9000, 10.0), np.full(1000, 0.1)]
    weights_of_all /= weights_of_all.mean()
    y = np.r_[np.zeros(5), np.repeat([1.0, 0.0], [20, 35])]
    drawn = np.r_[np.full(5, weights_of_all[0]), np.full(55, weights_of_all[-1])]
    found = weighted(y, drawn, profile=weight_profile(weights_of_all))
    assert found.high > 0.3
    unseen = weighted(y[5:], drawn[5:], profile=weight_profile(weights_of_all))
    assert unseen.high > 0.9
    assert "wide because" in unseen.notes[0]


def test_losses_of_equal_size_have_no_width() -> None:
    one = np.ones(1)
    assert losses(one, 20 * one, 2 * one, 0 * one)[:2] == (2.0, 2.0)


def test_skewness_moves_the_interval_up() -> None:
    one = np.ones(1)
    plain = losses(one, 50 * one, one, one)
    skewed = losses(one, 50 * one, one, one, third_moments=6 * one)
    assert skewed.low > plain.low
    assert skewed.high > plain.high


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


def test_skewed_score_exchanges_right_and_wrong() -> None:
    A, n, x = np.array([0.7, 0.3]), np.array([12.0, 20.0]), np.array([1.0, 9.0])
    low, high = skewed_score_bounds(A, n, x, 0.95)
    assert skewed_score_bounds(A, n, n - x, 0.95) == pytest.approx((1 - high, 1 - low))
