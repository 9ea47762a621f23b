"""Strata of equal draws, codes of variables, and the regression behind the adaptive sampler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from opmon._ridge import fit
from opmon.errors import InputError
from opmon.samplers._aim import Aim
from opmon.samplers._cells import NONE, allocate, drawn, strata
from opmon.samplers._proxy import coded
from opmon.types import Frame


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.data())
def test_allocation_keeps_its_bounds(sizes: list[int], data: st.DataObject) -> None:
    N = np.array(sizes)
    expected = np.array(data.draw(st.lists(st.floats(0.01, 100), min_size=len(sizes), max_size=len(sizes))))
    budget = data.draw(st.integers(len(sizes), int(N.sum())))
    n = allocate(expected, N, budget)
    assert n.sum() == budget
    assert (n >= 1).all()
    assert (n <= N).all()


def test_allocation_is_in_proportion() -> None:
    assert allocate(np.array([1.0, 2.0, 1.0]), np.array([100, 100, 100]), 40).tolist() == [10, 20, 10]


def test_more_strata_than_draws_are_refused() -> None:
    with pytest.raises(InputError, match="3 for 4 strata"):
        allocate(np.ones(4), np.full(4, 100), 3)


def test_strata_expect_equal_draws() -> None:
    population = np.zeros(NONE, dtype=np.int64)
    population[:1000] = 10
    density = np.where(np.arange(NONE) < 500, 0.5, 1.5)
    cut = strata(population, density, 60)
    assert cut.counts.tolist() == [6] * 10
    assert cut.sizes.sum() == 10_000
    assert cut.sizes[0] > 2.5 * cut.sizes[-1]


def test_every_input_of_a_stratum_is_equally_likely() -> None:
    bins = np.repeat([5, 9], [20, 30]).astype(np.uint16)
    population = np.bincount(bins, minlength=NONE)
    cut = strata(population, np.ones(NONE), 12)
    hits = np.zeros(50)
    for seed in range(4000):
        hits[drawn(bins, cut, np.random.default_rng(seed))[0]] += 1
    share = hits / 4000
    wanted = np.repeat(cut.counts / cut.sizes, cut.sizes)
    assert np.abs(share - wanted).max() < 4 * np.sqrt(0.25 / 4000)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_ranks_of_codes_follow_the_values(scale: float) -> None:
    values = np.random.default_rng(0).beta(0.3, 2, 3000) * scale
    (variable,) = coded(Frame({"x": values}), ("x",))
    found = variable.ranks()[np.searchsorted(variable.present, variable.codes(slice(None)))]
    assert np.abs(found - (rankdata(values) - 0.5) / 3000).max() < 0.02


def test_constant_variable_is_left_out() -> None:
    assert coded(Frame({"x": np.full(50, 0.3), "y": np.zeros(50)}), ("x", "y")) == []


def test_regression_finds_the_coefficients() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(20_000), rng.normal(size=(20_000, 2))])
    beta = np.array([-1.0, 0.8, -0.5])
    failed = rng.random(20_000) < 1 / (1 + np.exp(-X @ beta))
    loss = np.exp(X @ beta) * rng.exponential(size=20_000)
    for y, binary in ((failed.astype(float), True), (loss, False)):
        assert np.abs(fit(X, y, np.zeros(3), 1.0, binary) - beta).max() < 0.1


@pytest.mark.parametrize("y", [np.zeros(30), np.ones(30), np.repeat([0.0, 1.0], 15)])
def test_regression_stands_separable_outcomes(y: np.ndarray) -> None:
    X = np.column_stack([np.ones(30), np.linspace(-2, 2, 30)])
    assert np.isfinite(fit(X, y, np.full(2, 0.5), 1.0, True)).all()


@pytest.mark.parametrize("aim", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_densities_have_mean_one_and_keep_their_floor(aim: float) -> None:
    score = np.linspace(-9, 3, 200)
    population = np.arange(200, 0, -1)
    settings = Aim.of(aim)
    for density, floor in (
        (settings.first(np.exp(score), population), settings.first_floor),
        (settings.later(score, population, 200, 150, True), settings.floor),
        (settings.later(score, population, 200, 150, False), settings.floor),
    ):
        assert population @ density / population.sum() == pytest.approx(1)
        assert density.min() >= floor - 1e-12
