"""Slices and losses with few draws: exact coverage for shares, seeded studies for losses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from opmon.estimators._counts import counted, weighted_counts
from opmon.estimators._losses import mean_of
from opmon.estimators.ratios import slice_accuracy
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.plugins import make
from opmon.testing.populations import Population, classifier
from opmon.types import Draw, Estimate, Sample

RATES = np.concatenate([np.geomspace(0.0005, 0.1, 60), np.linspace(0.1, 0.9, 80), 1 - np.geomspace(0.0005, 0.1, 60)])


def slice_of(failures: int, heard: int, others: int = 60) -> Estimate:
    """A slice of ``heard`` answers in a larger simple random sample."""
    outcomes = np.zeros(heard + others)
    outcomes[:failures] = 1.0
    draw = Draw("srs", 10**6, np.arange(heard + others), constants={"replacement": np.array(True)})
    sample = Sample(draw, outcomes, "classification")
    return slice_accuracy(SimpleRandomEstimator(), sample, np.arange(heard + others) < heard, "slice")


def coverage(heard: int) -> np.ndarray:
    """The exact coverage at every failure rate."""
    intervals = [slice_of(failures, heard) for failures in range(heard + 1)]
    low, high = (np.array([getattr(one, end) for one in intervals])[:, None] for end in ("low", "high"))
    held = (low <= 1 - RATES) & (high >= 1 - RATES)
    return np.asarray((stats.binom.pmf(np.arange(heard + 1)[:, None], heard, RATES) * held).sum(axis=0))


@pytest.mark.parametrize("heard", [12, 22, 40])
def test_slices_cover_at_any_rate_and_where_they_are_nearly_always_right(heard: int) -> None:
    found = coverage(heard)
    assert found.min() > 0.9
    assert found.mean() > 0.95
    assert found[RATES <= 0.02].min() > 0.95


@pytest.mark.parametrize("heard", [1, 3, 6, 9])
def test_under_ten_draws_bounds_hold_whatever_the_rate(heard: int) -> None:
    assert coverage(heard).min() >= 0.95
    note = slice_of(0, heard).notes[-1]
    assert note.startswith(f"too few to say: only {heard} answered draw")


def test_ten_draws_say_something() -> None:
    assert not any("too few" in note for note in slice_of(1, 10).notes)


def test_weighted_counts_of_equal_weights_are_counts() -> None:
    for failures, n in ((0, 8), (2, 8), (8, 8), (5, 60)):
        weighted = weighted_counts(failures / n, failures / n**2, 1 / n, 0.95)
        assert weighted == pytest.approx(counted(failures, n, 0.95), abs=1e-9)


def test_unequal_weights_make_a_slice_wider() -> None:
    low, high = weighted_counts(0.1, 0.1 / 20, 1 / 20, 0.95)
    wide_low, wide_high = weighted_counts(0.1, 0.1 / 8, 1 / 8, 0.95)
    assert wide_low < low
    assert high < wide_high


def test_slices_of_weighted_draws_cover_where_the_slice_is_nearly_always_right() -> None:
    """Draws in proportion to suspicion; 0.906 with Wilson's interval."""
    base, rng = classifier(6000, accuracy=0.9, seed=4), np.random.default_rng(3)
    inside = rng.random(6000) < 0.2
    outcomes = np.where(inside, 0.0, base.outcomes)
    outcomes[rng.choice(np.flatnonzero(inside), 6)] = 1.0
    population = Population(base.frame, outcomes)
    truth, held = 1 - float(outcomes[inside].mean()), 0
    prepared, estimator = make("sampler", "sups").prepare(population.frame, 110), make("estimator", "sups")
    for seed in range(150):
        draw = prepared(np.random.default_rng(seed))
        sample = Sample(draw, outcomes[draw.positions], "classification")
        found = slice_accuracy(estimator, sample, inside[draw.positions], "slice")
        held += found.low <= truth <= found.high
    assert held >= stats.binom.ppf(0.0005, 150, 0.95)


@pytest.mark.parametrize("n", [20, 30])
@pytest.mark.parametrize(
    "losses",
    [
        lambda rng, shape: rng.normal(size=shape) ** 2,
        lambda rng, shape: rng.lognormal(0, 1, shape),
        lambda rng, shape: rng.standard_t(5, shape) ** 2,
        lambda rng, shape: rng.lognormal(0, 0.5, shape),
    ],
    ids=["squared normal", "log-normal", "squared t5", "log-normal 0.5"],
)
def test_few_skewed_losses_cover_on_the_optimistic_side_too(
    n: int, losses: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
) -> None:
    rng = np.random.default_rng(2)
    mean = float(losses(rng, (10**6,)).mean())
    bounds = np.array([mean_of(y, 0.95)[:2] for y in losses(rng, (600, n))])
    assert (bounds[:, 1] < mean).mean() < 0.07, "the model is worse than the interval says"
    assert ((bounds[:, 0] <= mean) & (mean <= bounds[:, 1])).mean() > 0.93
