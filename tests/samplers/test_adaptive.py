"""The adaptive sampler: waves, strata, bounds on the weights, and what it does with its variables."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.samplers.adaptive import Adaptive, _share
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Draw, Frame, Sample

POPULATION = classifier(size=4000, accuracy=0.8)


def to_the_end(sampler: Adaptive, population: Population, budget: int, seed: int = 1, response: float = 1.0) -> Draw:
    rng = np.random.default_rng(seed)
    draw = sampler.draw(population.frame, budget, rng)
    while len(draw) < min(budget, population.frame.size):
        draw = sampler.next_batch(population.frame, budget, population.answer(draw, response, rng), rng)
    return draw


def failures(sampler: Adaptive, budget: int = 200, repetitions: int = 30) -> float:
    drawn = (to_the_end(sampler, POPULATION, budget, seed) for seed in range(repetitions))
    return float(np.mean([POPULATION.answer(draw).outcomes.sum() for draw in drawn]))


def test_waves_follow_each_other_and_spend_the_budget() -> None:
    rng = np.random.default_rng(0)
    sampler = Adaptive(waves=3)
    first = sampler.draw(POPULATION.frame, 200, rng)
    second = sampler.next_batch(POPULATION.frame, 200, POPULATION.answer(first), rng)
    third = sampler.next_batch(POPULATION.frame, 200, POPULATION.answer(second), rng)
    assert [len(first), len(second), len(third)] == [60, 130, 200]
    assert second.positions[:60].tolist() == first.positions.tolist()
    assert sampler.next_batch(POPULATION.frame, 200, POPULATION.answer(third), rng) is third


def test_no_input_is_drawn_twice() -> None:
    draw = to_the_end(Adaptive(aim=1.0), POPULATION, 800)
    assert len(draw.unique_positions) == 800


@pytest.mark.parametrize("budget", [1, 7, 60, 79])
def test_small_budget_is_one_wave(budget: int) -> None:
    assert len(Adaptive().draw(POPULATION.frame, budget, np.random.default_rng(0))) == budget


def test_strata_of_a_wave_cover_what_was_not_drawn_before() -> None:
    draw = to_the_end(Adaptive(), POPULATION, 300)
    wave, size = draw.constants["stratum_wave"], draw.constants["stratum_size"]
    assert size[wave == 0].sum() == 4000
    assert size[wave == 1].sum() == 4000 - 90


@pytest.mark.parametrize(("aim", "floor"), [(0.0, 0.3), (0.5, 0.2), (1.0, 0.07)])
def test_weights_are_bounded_by_the_uniform_share(aim: float, floor: float) -> None:
    draw = to_the_end(Adaptive(aim=aim), POPULATION, 800)
    counts = np.bincount(draw.columns["stratum"])
    size, wave = draw.constants["stratum_size"], draw.constants["stratum_wave"]
    for t in (0, 1):
        own = wave == t
        weight = (size[own] / size[own].sum()) / (counts[own] / counts[own].sum())
        assert weight.max() <= 1.25 / floor  # whole numbers of draws, from five a stratum on


def test_aim_trades_failures() -> None:
    estimate, middle, expose = (failures(Adaptive(aim=aim)) for aim in (0.0, 0.5, 1.0))
    plain = 200 * (1 - POPULATION.truth)
    assert plain < estimate < middle < expose
    assert middle > 1.3 * plain


def test_labels_overrule_a_misleading_variable() -> None:
    chi = POPULATION.frame.variable("confidence")
    turned = Population(Frame({"confidence": chi.max() - chi}), POPULATION.outcomes)
    draw = to_the_end(Adaptive(aim=1.0), turned, 400)
    found = turned.answer(draw).outcomes
    first = draw.columns["wave"] == 0
    assert found[~first].mean() > 1.3 * (1 - POPULATION.truth) > found[first].mean()


def test_variables_can_be_named() -> None:
    one = Adaptive(variables=("dsa",)).draw(POPULATION.frame, 100, np.random.default_rng(3))
    alone = Adaptive().draw(Frame({"dsa": POPULATION.frame.variable("dsa")}), 100, np.random.default_rng(3))
    assert one.positions.tolist() == alone.positions.tolist()


def test_scale_of_a_variable_does_not_matter() -> None:
    chi = POPULATION.frame.variable("confidence")
    small, large = (Adaptive().draw(Frame({"x": chi * by}), 200, np.random.default_rng(1)) for by in (2.0**-20, 2.0**9))
    assert small.positions.tolist() == large.positions.tolist()


def test_no_variable_is_simple_random_sampling() -> None:
    draw = Adaptive().draw(Frame({}, size=500), 60, np.random.default_rng(0))
    assert draw.constants["stratum_size"].tolist() == [500]
    assert len(set(draw.positions.tolist())) == 60


def test_frame_within_the_budget_is_drawn_whole() -> None:
    draw = Adaptive().draw(POPULATION.frame, 4000, np.random.default_rng(0))
    assert sorted(draw.positions.tolist()) == list(range(4000))


def test_silent_labels_are_not_learned_from() -> None:
    draw = Adaptive().draw(POPULATION.frame, 200, np.random.default_rng(0))
    silent = Sample(draw, np.full(len(draw), np.nan))
    longer = Adaptive().next_batch(POPULATION.frame, 200, silent, np.random.default_rng(1))
    assert len(longer) == 200


def test_losses_guide_later_waves() -> None:
    population = regressor(size=4000)
    draw = to_the_end(Adaptive(aim=1.0), population, 400)
    later = draw.columns["wave"] == 1
    assert population.answer(draw).outcomes[later].mean() > 1.3 * population.outcomes.mean()


@pytest.mark.parametrize("later_value", [0.7, 1.0, 1.2])
def test_share_of_a_wave_in_a_large_frame_goes_by_its_draws(later_value: float) -> None:
    assert _share(60, 10**9, 140, later_value) == pytest.approx(60 / (60 + 140 * later_value))


def test_share_of_a_wave_knows_that_the_frame_ends() -> None:
    assert _share(30, 100, 0, 1.0) == 1
    assert _share(30, 100, 70, 1.0) == 0  # the rest is a census of what is left
    # 1/30 − 1/100 beside 0.7² (1/69 − 1/70)
    assert _share(30, 100, 69, 1.0) == pytest.approx(0.00010145 / (0.00010145 + 0.02333333), rel=1e-3)


@pytest.mark.parametrize("given", [{"aim": 1.1}, {"aim": -0.1}, {"waves": 0}, {"waves": 1.5}, {"variables": "dsa"}])
def test_wrong_parameter_is_an_error(given: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Adaptive(**given)  # type: ignore[arg-type]


def test_going_on_with_another_design_is_an_error() -> None:
    draw = Draw("srs", 4000, np.arange(5))
    with pytest.raises(InputError, match="Begin with draw"):
        Adaptive().next_batch(POPULATION.frame, 100, Sample(draw, np.zeros(5)), np.random.default_rng(0))


def test_errors_of_whole_numbers_are_losses_where_the_problem_says_so() -> None:
    """A first wave that happens to show errors 0 and 1 only, or none at all, does not turn the losses into failures."""
    rng = np.random.default_rng(0)
    frame = Frame({"vae": rng.random(1000)})
    first = Adaptive().draw(frame, 200, rng)
    for outcomes in (np.arange(len(first)) % 2, np.zeros(len(first))):
        sample = Sample(first, outcomes.astype(float), "regression")
        assert len(Adaptive().next_batch(frame, 200, sample, np.random.default_rng(1))) == 200
    shares, losses = (
        Adaptive().next_batch(
            frame, 200, Sample(first, (np.arange(60) % 2).astype(float), problem), np.random.default_rng(1)
        )
        for problem in ("classification", "regression")
    )
    assert shares.constants["stratum_size"].tolist() != losses.constants["stratum_size"].tolist()
