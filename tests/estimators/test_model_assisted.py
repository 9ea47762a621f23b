from __future__ import annotations

import numpy as np
import pytest

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators.model_assisted import ModelAssisted
from opmon.estimators.proxies import Proxy, cross_fitted
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.samplers.srs import SimpleRandom
from opmon.testing.populations import classifier, regressor
from opmon.types import Frame

POPULATION = classifier(size=2000, accuracy=0.8, informative=2.0)
SRS = SimpleRandomEstimator()


def test_assisted_by_the_truth_is_the_truth() -> None:
    draw = SimpleRandom().draw(POPULATION.frame, 50, np.random.default_rng(1))
    found = ModelAssisted(SRS, Proxy.of_frame(POPULATION.outcomes, draw)).estimate(POPULATION.answer(draw))
    assert found.value == pytest.approx(POPULATION.accuracy)
    assert found.low == pytest.approx(found.high)


@pytest.mark.parametrize("name", ["srs", "ssrs", "sups", "rhc", "two_stage", "deepest"])
def test_assisted_by_nothing_is_the_designs_own_estimate(name: str) -> None:
    draw = plugins.make("sampler", name).draw(POPULATION.frame, 50, np.random.default_rng(1))
    estimator, sample = plugins.make("estimator", name), POPULATION.answer(draw)
    found = ModelAssisted(estimator, Proxy.of_frame(np.zeros(2000), draw)).estimate(sample)
    own = estimator.estimate(sample)
    assert (found.value, found.low, found.high) == pytest.approx((own.value, own.low, own.high))


def test_assisted_by_a_constant_changes_nothing_under_simple_random_sampling() -> None:
    draw = SimpleRandom().draw(POPULATION.frame, 50, np.random.default_rng(1))
    sample = POPULATION.answer(draw)
    found = ModelAssisted(SRS, Proxy.of_frame(np.full(2000, 0.7), draw)).estimate(sample)
    assert found.value == pytest.approx(SRS.estimate(sample).value)


@pytest.mark.parametrize("name", ["srs", "sups", "ssrs", "deepest"])
@pytest.mark.parametrize("weight", [1.0, None])
def test_assisted_by_a_wrong_proxy_stays_unbiased(name: str, weight: float | None) -> None:
    wrong = 1 - POPULATION.frame.variables["confidence"].astype(np.float64)
    errors, held = [], 0
    for seed in range(150):
        draw = plugins.make("sampler", name).draw(POPULATION.frame, 100, np.random.default_rng(seed))
        assisted = ModelAssisted(plugins.make("estimator", name), Proxy.of_frame(wrong, draw), weight)
        found = assisted.estimate(POPULATION.answer(draw))
        errors.append(found.value - POPULATION.accuracy)
        held += found.low <= POPULATION.accuracy <= found.high
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(150)
    assert held >= 131  # binomial, 150 at 0.95: below this once in 4000


@pytest.mark.parametrize("population", [POPULATION, regressor(size=2000)], ids=["classification", "regression"])
def test_assisted_by_a_cross_fitted_proxy_is_unbiased_and_no_worse(population: object) -> None:
    assert isinstance(population, type(POPULATION))
    errors, own, held = [], [], 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        sample = population.answer(SimpleRandom().draw(population.frame, 200, rng))
        proxy = cross_fitted(population.frame.variables, sample, rng)
        found = ModelAssisted(SRS, proxy, None).estimate(sample)
        errors.append(found.value - population.accuracy)
        own.append(SRS.estimate(sample).value - population.accuracy)
        held += found.low <= population.accuracy <= found.high
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(150)
    assert np.std(errors) < 1.02 * np.std(own)
    assert held >= 131


def test_assisted_helps_where_the_variable_tells() -> None:
    ratios = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sample = POPULATION.answer(SimpleRandom().draw(POPULATION.frame, 200, rng))
        found = ModelAssisted(SRS, cross_fitted(POPULATION.frame.variables, sample, rng)).estimate(sample)
        ratios.append(found.half_width / SRS.estimate(sample).half_width)
    assert np.mean(ratios) < 0.92


def test_cross_fitted_survives_one_class_and_missing_answers() -> None:
    rng = np.random.default_rng(1)
    draw = SimpleRandom().draw(POPULATION.frame, 40, rng)
    sample = POPULATION.answer(draw, response=0.5)
    right = type(sample)(draw, np.where(np.isnan(sample.outcomes), np.nan, 0.0))
    found = ModelAssisted(SRS, cross_fitted(POPULATION.frame.variables, right, rng)).estimate(right)
    assert found.value == pytest.approx(1.0, abs=0.1)


def test_a_proxy_for_another_draw_is_an_error() -> None:
    draw = SimpleRandom().draw(Frame({}, size=100), 10, np.random.default_rng(1))
    with pytest.raises(InputError, match="per draw"):
        ModelAssisted(SRS, Proxy(np.zeros(3), np.zeros(3))).estimate(
            type(POPULATION)(Frame({}, size=100), np.zeros(100)).answer(draw)
        )
    with pytest.raises(InputError, match="100 inputs"):
        Proxy.of_frame(np.zeros(99), draw)
    with pytest.raises(InputError, match="finite"):
        Proxy(np.array([np.nan]), np.zeros(1))
