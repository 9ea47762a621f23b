"""The frontier between the least variance and the most failures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from opmon.samplers import _frontier

POPULATION = np.full(400, 25)
RATE = np.linspace(0.001, 0.9, 400) ** 2
VARIANCE = RATE * (1 - RATE)
DRAWS = 300


def density(reach: float, draws: int = DRAWS) -> np.ndarray:
    return _frontier.density(VARIANCE, RATE, POPULATION, draws, reach)


def exposed(found: np.ndarray) -> float:
    return float((found * POPULATION * RATE).sum() / POPULATION.sum())


def variance(found: np.ndarray) -> float:
    return float((POPULATION * VARIANCE / found).sum())


def test_without_reach_it_is_neymans_allocation() -> None:
    neyman = np.sqrt(VARIANCE)
    neyman /= neyman.mean()
    assert variance(neyman) <= variance(density(0.0)) < 1.01 * variance(neyman)  # groups of bins, not bins
    assert np.abs(density(0.0) - neyman).max() < 0.1


def test_full_reach_draws_the_most_suspicious_inputs() -> None:
    found = density(1.0)
    top = RATE[-DRAWS // 25 :].mean()
    assert exposed(found) == pytest.approx(top, rel=0.02)
    assert found[: 400 - 2 * DRAWS // 25].max() < 0.02


@pytest.mark.parametrize("reach", [0.0, 0.2, 0.5, 0.73, 0.9, 1.0])
def test_density_has_mean_one_and_draws_no_input_more_than_once(reach: float) -> None:
    found = density(reach)
    assert (found * POPULATION).sum() == pytest.approx(POPULATION.sum())
    assert found.min() >= 0
    assert found.max() <= POPULATION.sum() / DRAWS * (1 + 1e-6)


def test_more_reach_exposes_more_at_more_variance() -> None:
    steps = [density(reach) for reach in (0.1, 0.3, 0.5, 0.7, 0.9)]
    assert all(exposed(a) < exposed(b) for a, b in itertools.pairwise(steps))
    assert all(variance(a) < variance(b) for a, b in itertools.pairwise(steps))


@pytest.mark.parametrize("power", [1.5, 3.0, 8.0])
def test_no_power_of_the_rate_exposes_as_much_with_less_variance(power: float) -> None:
    """The same failures from draws in proportion to a power of the predicted rate, mixed with uniform ones."""
    tilted = 0.1 + 0.9 * RATE**power / (RATE**power).mean()
    if tilted.max() > POPULATION.sum() / DRAWS:
        tilted = np.minimum(tilted, POPULATION.sum() / DRAWS)
    low, high = exposed(density(0.0)), exposed(density(1.0))
    ours = density((exposed(tilted) - low) / (high - low))
    assert exposed(ours) == pytest.approx(exposed(tilted), rel=0.01)
    assert variance(ours) < variance(tilted)


@pytest.mark.parametrize("draws", [1, 20, 9_999, 10_000])
def test_any_number_of_draws(draws: int) -> None:
    assert np.isfinite(density(0.73, draws)).all()


def test_equal_rates_are_drawn_uniformly() -> None:
    rate = np.full(400, 0.2)
    found = _frontier.density(rate * (1 - rate), rate, POPULATION, DRAWS, 0.73)
    assert found == pytest.approx(np.ones(400))


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_certain_outcomes_are_drawn_uniformly(rate: float) -> None:
    rates = np.full(400, rate)
    assert _frontier.density(rates * 0, rates, POPULATION, DRAWS, 0.73) == pytest.approx(np.ones(400))


@pytest.mark.parametrize("seed", range(20))
def test_frontier_rises_to_the_greedy_draw(seed: int) -> None:
    """Whatever the population, more reach never exposes less, and full reach is the greedy draw."""
    rng = np.random.default_rng(seed)
    population = rng.poisson(rng.choice([0.3, 2.0, 30.0]), 300)
    rate = np.sort(rng.beta(0.3, 3, 300))
    draws = int(rng.integers(1, population.sum()))
    found = [
        _frontier.density(rate * (1 - rate), rate, population, draws, reach) for reach in (0.0, 0.3, 0.6, 0.9, 1.0)
    ]
    gains = [float((density * population * rate).sum()) for density in found]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(gains))
    top = np.repeat(rate, population)[-draws:].sum() * population.sum() / draws
    assert gains[-1] == pytest.approx(top, rel=0.05)  # groups of bins, not inputs


def test_empty_bins_do_not_count() -> None:
    population = np.where(np.arange(400) % 2 == 0, 50, 0)
    found = _frontier.density(VARIANCE, RATE, population, DRAWS, 0.73)
    assert (found * population).sum() == pytest.approx(population.sum())
