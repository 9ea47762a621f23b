"""One suite over every sampler there is, and the estimator its draws name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmon import plugins
from opmon.errors import InputError
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Draw, Frame, Sample
from tests.builtin import built_in

SAMPLERS = built_in("sampler")
BY_VARIABLE = [name for name in SAMPLERS if "variable" in plugins.parameters(plugins.load("sampler", name))]
CLASSIFIER = classifier(size=600, activations=6)
REGRESSOR = regressor(size=600, activations=6)
POOR = {
    "zero": np.zeros(300),
    "constant": np.full(300, 0.4),
    "one positive": np.r_[np.zeros(299), 1.0],
    "two values": np.r_[np.zeros(150), np.ones(150)],
    "tiny": np.full(300, 1e-300),
    "smallest": np.r_[np.zeros(150), np.full(150, 5e-324)],
    "huge": np.linspace(0, 1.7e308, 300),
    "far tail": np.r_[np.linspace(0, 1, 299), 1e12],
}


def drawn(name: str, population: Population, budget: int, seed: int = 1, **arguments: Any) -> Draw:
    """The draw after all waves."""
    sampler = plugins.make("sampler", name, arguments)
    rng = np.random.default_rng(seed)
    draw: Draw = sampler.draw(population.frame, budget, rng)
    while hasattr(sampler, "next_batch") and len(draw) < min(budget, population.frame.size):
        longer = sampler.next_batch(population.frame, budget, population.answer(draw), rng)
        assert len(longer) > len(draw)
        draw = longer
    return draw


def estimated(sample: Sample, level: float = 0.95) -> Any:
    return plugins.make("estimator", sample.draw.design).estimate(sample, level)


def with_variable(values: Any, activations: bool = True) -> Frame:
    chi = np.asarray(values)
    rows = np.random.default_rng(0).normal(size=(len(chi), 3)) if activations else None
    return Frame({"confidence": chi}, activations=rows)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("population", [CLASSIFIER, REGRESSOR], ids=["classification", "regression"])
@pytest.mark.parametrize("budget", [1, 2, 7, 60, 599])
def test_sampler_draws_the_budget_and_its_estimate_is_sound(name: str, population: Population, budget: int) -> None:
    draw = drawn(name, population, budget)
    assert len(draw) == budget
    found = estimated(population.answer(draw))
    assert found.low <= found.value <= found.high
    assert found.n == budget


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_is_decided_by_the_seed(name: str) -> None:
    first, again, other = (drawn(name, CLASSIFIER, 40, seed).positions.tolist() for seed in (3, 3, 4))
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("budget", [600, 1000])
@pytest.mark.parametrize("population", [CLASSIFIER, REGRESSOR], ids=["classification", "regression"])
def test_sampler_labels_a_small_frame_whole_and_exactly(name: str, budget: int, population: Population) -> None:
    draw = drawn(name, population, budget)
    assert sorted(draw.positions.tolist()) == list(range(600))
    assert draw.positions.tolist() != list(range(600))
    found = estimated(population.answer(draw))
    assert found.low == pytest.approx(found.value) == pytest.approx(found.high) == pytest.approx(population.truth)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("budget", [0, -5, 2.5, True, "10"])
def test_sampler_refuses_a_budget_that_is_none(name: str, budget: Any) -> None:
    with pytest.raises(InputError, match="budget"):
        plugins.make("sampler", name).draw(CLASSIFIER.frame, budget, np.random.default_rng(1))


@pytest.mark.parametrize("name", [*BY_VARIABLE, *(["adaptive"] if "adaptive" in SAMPLERS else [])])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -0.25])
def test_sampler_refuses_a_variable_that_cannot_be_right(name: str, bad: float) -> None:
    values = np.linspace(0, 1, 200)
    values[137] = bad
    with pytest.raises(InputError, match="confidence"):
        plugins.make("sampler", name).draw(with_variable(values), 20, np.random.default_rng(1))


@pytest.mark.parametrize("name", BY_VARIABLE)
def test_sampler_names_the_variables_there_are(name: str) -> None:
    with pytest.raises(InputError, match="confidence"):
        plugins.make("sampler", name, {"variable": "dsb"}).draw(
            with_variable([0.1, 0.2, 0.3]), 2, np.random.default_rng(1)
        )


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("values", POOR.values(), ids=POOR)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sampler_survives_a_poor_variable(name: str, values: np.ndarray, dtype: type) -> None:
    population = Population(
        with_variable(np.minimum(values, np.finfo(dtype).max).astype(dtype)), np.r_[np.ones(30), np.zeros(270)]
    )
    draw = drawn(name, population, 40)
    assert len(draw) == 40
    found = estimated(population.answer(draw))
    assert np.isfinite(found.value)


@pytest.mark.parametrize("name", [*BY_VARIABLE, "adaptive"])
@pytest.mark.parametrize("kind", ["series", "list", "float16", "longdouble", "integers", "strided", "read-only"])
def test_sampler_takes_what_holds_numbers(name: str, kind: str) -> None:
    """The same draw whatever holds them; a pandas series goes by place, not by its labels."""
    plain = np.repeat(np.arange(150) % 16, 2).astype(np.float64)
    shuffled = pd.Series(plain, index=np.random.default_rng(0).permutation(300) + 7)
    locked = plain.copy()
    locked.flags.writeable = False
    held = {
        "series": shuffled,
        "list": plain.tolist(),
        "float16": plain.astype(np.float16),
        "longdouble": plain.astype(np.longdouble),
        "integers": plain.astype(np.int8),
        "strided": np.repeat(plain, 2)[::2],
        "read-only": locked,
    }[kind]
    outcomes = (plain > 9).astype(float)
    draws = [drawn(name, Population(Frame({"confidence": v}), outcomes), 100) for v in (plain, held)]
    assert draws[0].positions.tolist() == draws[1].positions.tolist()
    for column in draws[0].columns:
        assert draws[0].columns[column] == pytest.approx(draws[1].columns[column])


@pytest.mark.parametrize(
    "values",
    [["a", "b"], [None, 1.0], np.array([1 + 2j, 3]), np.ma.masked_array([1.0, 2.0], [True, False]), [[1.0], [2.0]]],
    ids=["text", "nothing", "complex", "masked", "table"],
)
def test_frame_refuses_what_is_not_numbers(values: Any) -> None:
    with pytest.raises(InputError, match="'confidence'"):
        Frame({"confidence": values})


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("wrong", [0.0, 1.0])
@pytest.mark.parametrize("budget", [3, 50])
def test_sampler_all_right_or_all_wrong_is_covered(name: str, wrong: float, budget: int) -> None:
    population = Population(CLASSIFIER.frame, np.full(600, wrong))
    found = estimated(population.answer(drawn(name, population, budget)))
    assert found.low - 1e-9 <= 1 - wrong <= found.high + 1e-9
    assert found.high - found.low > 0.01


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_of_two_inputs(name: str) -> None:
    population = Population(with_variable([0.2, 0.8]), np.array([0.0, 1.0]))
    assert len(drawn(name, population, 1)) == 1


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_refuses_an_empty_frame(name: str) -> None:
    with pytest.raises(InputError):
        plugins.make("sampler", name).draw(with_variable(np.empty(0)), 5, np.random.default_rng(1))


@pytest.mark.parametrize("name", BY_VARIABLE)
@given(power=st.integers(-8, 8), seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_sampler_ignores_the_scale_of_its_variable(name: str, power: int, seed: int) -> None:
    """Scaling by a power of two is exact in floating point, so the draw must be the very same."""
    chi = CLASSIFIER.frame.variables["dsa"].astype(np.float64)
    draws = []
    for values in (chi, chi * 2.0**power):
        population = Population(Frame({"dsa": values}), CLASSIFIER.outcomes)
        draws.append(drawn(name, population, 50, seed, variable="dsa"))
    assert draws[0].positions.tolist() == draws[1].positions.tolist()


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "ces"])
def test_sampler_does_not_favour_a_place_in_the_frame(name: str) -> None:
    """With a constant variable every position is drawn equally often."""
    population = Population(with_variable(np.full(30, 0.5)), np.zeros(30))
    counts = np.zeros(30)
    for seed in range(400):
        np.add.at(counts, drawn(name, population, 5, seed).positions, 1)
    expected = counts.sum() / 30
    assert ((counts - expected) ** 2 / expected).sum() < 65  # chi-squared, 29 degrees of freedom: p = 0.0001


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_any_prefix_reaches_the_whole_frame(name: str) -> None:
    """Order is random: the first tenth of the draws is not one corner of the variable."""
    firsts = [drawn(name, CLASSIFIER, 100, seed).positions[:10] for seed in range(20)]
    chi = CLASSIFIER.frame.variables["confidence"][np.concatenate(firsts)]
    everything = [drawn(name, CLASSIFIER, 100, seed).positions for seed in range(20)]
    spread = CLASSIFIER.frame.variables["confidence"][np.concatenate(everything)].std()
    assert chi.std() > 0.5 * spread
