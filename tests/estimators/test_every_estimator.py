"""One suite over the estimators of every design, on draws of the samplers that name them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmon import plugins
from opmon.errors import InputError
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Draw, Sample
from tests.builtin import built_in

SAMPLERS = built_in("sampler")
CLASSIFIER = classifier(size=800, activations=4, seed=5)
REGRESSOR = regressor(size=800, activations=4, seed=5)
LINEAR = [name for name in SAMPLERS if hasattr(plugins.load("estimator", name), "coefficients")]


def sample_of(name: str, population: Population, budget: int = 80, seed: int = 2) -> Sample:
    sampler = plugins.make("sampler", name)
    rng = np.random.default_rng(seed)
    draw: Draw = sampler.draw(population.frame, budget, rng)
    while hasattr(sampler, "next_batch") and len(draw) < budget:
        draw = sampler.next_batch(population.frame, budget, population.answer(draw), rng)
    return population.answer(draw)


def estimated(sample: Sample, level: float = 0.95) -> Any:
    return plugins.make("estimator", sample.draw.design).estimate(sample, level)


@pytest.mark.parametrize("name", SAMPLERS)
def test_estimator_without_any_answer_says_so(name: str) -> None:
    sample = sample_of(name, CLASSIFIER)
    with pytest.raises(InputError, match="answer"):
        estimated(Sample(sample.draw, np.full(len(sample.draw), np.nan)))


@pytest.mark.parametrize("name", SAMPLERS)
def test_estimator_refuses_the_draw_of_another_design(name: str) -> None:
    other = Draw("nobody's", 10, np.arange(3))
    with pytest.raises(InputError, match="nobody's"):
        plugins.make("estimator", name).estimate(Sample(other, np.zeros(3)))


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("population", [CLASSIFIER, REGRESSOR], ids=["classification", "regression"])
def test_estimator_counts_what_was_not_answered(name: str, population: Population) -> None:
    full = sample_of(name, population)
    part = population.answer(full.draw, response=0.5, rng=np.random.default_rng(7))
    found = estimated(part)
    assert found.response == pytest.approx(part.response) != 1.0
    assert found.n == 80
    assert found.low <= found.value <= found.high
    if population is CLASSIFIER:
        assert found.half_width > 0.9 * estimated(full).half_width


@pytest.mark.parametrize("name", SAMPLERS)
def test_estimator_with_a_single_answer(name: str) -> None:
    sample = sample_of(name, CLASSIFIER)
    outcomes = np.full(80, np.nan)
    outcomes[11] = 1.0
    found = estimated(Sample(sample.draw, outcomes))
    assert found.low <= found.value <= found.high
    assert found.half_width > 0.2


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("population", [CLASSIFIER, REGRESSOR], ids=["classification", "regression"])
def test_estimator_is_wider_at_a_higher_level(name: str, population: Population) -> None:
    sample = sample_of(name, population)
    assert estimated(sample, 0.99).half_width > estimated(sample, 0.8).half_width


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, -0.2, np.nan])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_estimator_refuses_a_level_that_is_none(name: str, level: float) -> None:
    for population in (CLASSIFIER, REGRESSOR):
        with pytest.raises(InputError, match="level"):
            estimated(sample_of(name, population), level)


@pytest.mark.parametrize("name", SAMPLERS)
def test_estimator_gives_the_same_answer_twice(name: str) -> None:
    sample = sample_of(name, CLASSIFIER)
    assert estimated(sample) == estimated(sample)


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "deepest"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_estimator_ignores_the_order_of_the_draws(name: str, seed: int) -> None:
    """Not so for DeepEST, whose probabilities depend on what was drawn before; waves stay in their order."""
    sample = sample_of(name, CLASSIFIER)
    order = np.random.default_rng(seed).permutation(80)
    if "wave" in sample.draw.columns:
        order = order[np.argsort(sample.draw.columns["wave"][order], kind="stable")]
    draw = sample.draw
    columns = {key: values[order] for key, values in draw.columns.items()}
    mixed = Draw(draw.design, draw.frame_size, draw.positions[order], columns, draw.constants)
    found, expected = estimated(Sample(mixed, sample.outcomes[order])), estimated(sample)
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


@pytest.mark.parametrize("name", SAMPLERS)
@given(power=st.integers(-6, 6))
@settings(max_examples=8, deadline=None)
def test_estimator_scales_with_the_losses(name: str, power: int) -> None:
    sample = sample_of(name, REGRESSOR)
    scale = 2.0**power
    found, expected = estimated(Sample(sample.draw, sample.outcomes * scale)), estimated(sample)
    for bound in ("value", "low", "high"):
        assert getattr(found, bound) == pytest.approx(scale * getattr(expected, bound))


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("power", [-990, -530, -270, 270, 530, 990])
def test_estimator_stands_huge_and_tiny_losses(name: str, power: int) -> None:
    sample = sample_of(name, REGRESSOR)
    expected = estimated(sample)
    found = estimated(Sample(sample.draw, np.ldexp(sample.outcomes, power)))
    for bound in ("value", "low", "high"):
        assert np.ldexp(getattr(found, bound), -power) == pytest.approx(getattr(expected, bound))
    assert np.ldexp(found.standard_error, -power) == pytest.approx(expected.standard_error)


@pytest.mark.parametrize("name", SAMPLERS)
def test_estimator_tells_the_draws_without_an_answer_once(name: str) -> None:
    sample = sample_of(name, CLASSIFIER)
    part = CLASSIFIER.answer(sample.draw, response=0.5)
    told = [note for note in estimated(part).notes if "no answer" in note]
    assert len(told) == 1
    assert told[0].startswith(f"{int((~part.answered).sum())} of 80 draws")
    assert not [note for note in estimated(sample).notes if "no answer" in note]


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("response", [1.0, 0.6])
def test_estimator_is_the_sum_of_its_coefficients(name: str, response: float) -> None:
    whole = sample_of(name, REGRESSOR)
    sample = REGRESSOR.answer(whole.draw, response)
    estimator = plugins.make("estimator", sample.draw.design)
    a = estimator.coefficients(sample)
    assert estimator.estimate(sample).value == pytest.approx(float(a @ np.nan_to_num(sample.outcomes)))
    assert (a[~sample.answered] == 0).all()


@pytest.mark.parametrize("name", LINEAR)
def test_estimator_variance_is_that_of_its_standard_error(name: str) -> None:
    sample = sample_of(name, REGRESSOR)
    estimator = plugins.make("estimator", sample.draw.design)
    variance = estimator.variance(sample, sample.outcomes)
    assert estimator.estimate(sample).standard_error == pytest.approx(np.sqrt(variance))
