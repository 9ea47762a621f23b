"""The estimator of the adaptive sampler: worked by hand, unbiased whatever was learned, covering, and with gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.estimators._cells import Cells
from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.samplers.adaptive import Adaptive
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Draw, Estimate, Frame, Sample

ESTIMATE = AdaptiveEstimator().estimate


def by_hand(outcomes: list[float]) -> Sample:
    """Ten inputs; a first wave of four in strata of 6 and 4, a second of two from the six that are left."""
    draw = Draw(
        "adaptive",
        10,
        np.array([0, 1, 6, 7, 2, 3]),
        {"wave": np.array([0, 0, 0, 0, 1, 1]), "stratum": np.array([0, 0, 1, 1, 2, 2])},
        {
            "stratum_size": np.array([6, 4, 6]),
            "stratum_wave": np.array([0, 0, 1]),
            "wave_share": np.array([0.25, 1.0]),
        },
    )
    return Sample(draw, np.array(outcomes))


def whole(
    population: Population, budget: int, rng: np.random.Generator, aim: float = 0.5, response: float = 1.0
) -> Sample:
    """All waves of a draw, with the answers that came."""
    silent = np.where(rng.random(population.frame.size) < response, 0.0, np.nan) if response < 1 else 0.0
    answers = Population(population.frame, population.outcomes + silent)
    sampler = Adaptive(aim=aim)
    draw = sampler.draw(population.frame, budget, rng)
    while len(draw) < min(budget, population.frame.size):
        draw = sampler.next_batch(population.frame, budget, answers.answer(draw), rng)
    return answers.answer(draw)


OFTEN = 200


def repeated(population: Population, budget: int, repetitions: int = OFTEN, aim: float = 0.5) -> list[Estimate]:
    rng = np.random.default_rng(4)
    return [ESTIMATE(whole(population, budget, rng, aim)) for _ in range(repetitions)]


def test_two_waves_by_hand() -> None:
    first = 0.6 * 0.5 + 0.4 * 1.0
    second = (3 + 6 * 0.5) / 10
    found = ESTIMATE(by_hand([1, 0, 1, 1, 0, 1]))
    assert found.value == pytest.approx(1 - (0.25 * first + 0.75 * second))


def test_value_is_the_sum_of_its_coefficients() -> None:
    sample = whole(classifier(), 200, np.random.default_rng(2))
    a = AdaptiveEstimator().coefficients(sample)
    assert 1 - a @ sample.outcomes == pytest.approx(ESTIMATE(sample).value)
    assert a.sum() == pytest.approx(1)


def test_one_wave_alone_is_the_stratified_mean() -> None:
    full = by_hand([1, 0, 1, 1, 0, 1])
    first = Draw(
        "adaptive",
        10,
        full.draw.positions[:4],
        {name: values[:4] for name, values in full.draw.columns.items()},
        {"stratum_size": np.array([6, 4]), "stratum_wave": np.array([0, 0]), "wave_share": np.array([0.25])},
    )
    assert ESTIMATE(Sample(first, full.outcomes[:4])).value == pytest.approx(1 - 0.7)


@pytest.mark.parametrize("population", [classifier(size=90), regressor(size=90)], ids=["classes", "losses"])
def test_census_is_exact(population: Population) -> None:
    found = ESTIMATE(whole(population, 90, np.random.default_rng(0)))
    assert (found.low, found.value, found.high) == pytest.approx((population.truth,) * 3)


@pytest.mark.parametrize("aim", [0.0, 0.5, 1.0])
def test_small_frame_is_estimated_without_bias(aim: float) -> None:
    population = classifier(size=130, accuracy=0.7)
    values = np.array([e.value for e in repeated(population, 100, 300, aim)])
    assert abs(values.mean() - population.truth) < 4 * values.std() / np.sqrt(len(values))


@pytest.mark.parametrize("accuracy", [0.99, 0.9, 0.6])
@pytest.mark.parametrize("budget", [50, 200])
def test_interval_covers_a_classifier(accuracy: float, budget: int) -> None:
    population = classifier(size=5000, accuracy=accuracy)
    found = repeated(population, budget)
    covered = np.mean([e.low <= population.truth <= e.high for e in found])
    assert covered > 0.95 - 3 * np.sqrt(0.05 * 0.95 / OFTEN)


def test_interval_covers_losses() -> None:
    population = regressor(size=5000)
    found = repeated(population, 200)
    covered = np.mean([e.low <= population.truth <= e.high for e in found])
    assert covered > 0.95 - 3 * np.sqrt(0.05 * 0.95 / OFTEN)


def test_error_is_well_below_simple_random_sampling_and_the_standard_error_says_so() -> None:
    population = classifier(size=5000, accuracy=0.8)
    found = repeated(population, 200, 400)
    values = np.array([e.value for e in found])
    plain = np.sqrt(0.8 * 0.2 / 200 * (1 - 200 / 5000))
    assert np.sqrt(np.mean((values - population.truth) ** 2)) < 0.9 * plain
    assert np.mean([e.standard_error for e in found]) == pytest.approx(np.std(values), rel=0.15)


@pytest.mark.parametrize(("N", "n"), [(100, 99), (300, 250), (1000, 900), (1000, 500)])
def test_much_of_a_frame_is_estimated_no_worse_than_by_simple_random_sampling(N: int, n: int) -> None:
    population = classifier(size=N, accuracy=0.8, seed=3)
    found = repeated(population, n, 150, aim=0.0)
    errors = np.array([e.value for e in found]) - population.truth
    plain = np.sqrt(population.outcomes.var(ddof=1) / n * (1 - n / N))
    assert np.sqrt(np.mean(errors**2)) < 1.1 * plain
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(150)
    held = np.mean([e.low <= population.truth <= e.high for e in found])
    assert held > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 150)


def test_missing_answers_are_stood_in_for_by_their_stratum() -> None:
    with_gap = ESTIMATE(by_hand([1, np.nan, 1, 1, 0, 1]))
    first = 0.6 * 1.0 + 0.4 * 1.0
    second = (2 * 1 + 2 * 1 + 6 * 0.5) / 10
    assert with_gap.value == pytest.approx(1 - (0.25 * first + 0.75 * second))
    assert "1 of 6 draws" in with_gap.notes[-1]


def test_stratum_without_an_answer_joins_its_neighbour() -> None:
    found = ESTIMATE(by_hand([np.nan, np.nan, 1, 0, 0, 1]))
    second = (4 * 0.5 + 6 * 0.5) / 10
    assert found.value == pytest.approx(1 - (0.25 * 0.5 + 0.75 * second))


def test_strata_of_few_answers_are_joined_by_what_their_draws_stand_for() -> None:
    """Strata of 60 and 20 inputs with five draws each: two answers in the first, three in the second."""
    columns = {"wave": np.zeros(10, dtype=int), "stratum": np.repeat([0, 1], 5)}
    constants = {"stratum_size": np.array([60, 20]), "stratum_wave": np.zeros(2, int), "wave_share": np.ones(1)}
    outcomes = np.array([1, 0, np.nan, np.nan, np.nan, 1, 1, 1, np.nan, np.nan])
    sample = Sample(Draw("adaptive", 80, np.arange(10), columns, constants), outcomes)
    assert ESTIMATE(sample).value == pytest.approx(1 - (12 * 1 + 4 * 3) / (12 * 2 + 4 * 3))
    assert AdaptiveEstimator().coefficients(sample).sum() == pytest.approx(1)


def test_strata_with_all_their_answers_are_never_joined() -> None:
    sample = by_hand([1, 0, 1, 1, 0, 1])
    assert Cells.of(sample).heard.tolist() == [2, 2, 2]
    assert Cells.of(sample).uncertain == pytest.approx(Cells.of(sample).share)


def test_half_the_answers_tell_as_much_as_half_the_draws() -> None:
    population, rng = classifier(size=10000, accuracy=0.85, seed=3), np.random.default_rng(6)
    silent = [ESTIMATE(whole(population, 400, rng, response=0.5)).half_width for _ in range(40)]
    heard = [ESTIMATE(whole(population, 200, rng)).half_width for _ in range(40)]
    assert np.mean(silent) < 1.2 * np.mean(heard)


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize(("N", "n", "response"), [(1000, 800, 0.5), (500, 400, 0.8)])
def test_draws_without_an_answer_are_not_taken_for_known(
    make: Callable[..., Population], N: int, n: int, response: float
) -> None:
    population, rng = make(size=N, seed=3), np.random.default_rng(7)
    found = [ESTIMATE(whole(population, n, rng, response=response)) for _ in range(200)]
    values, errors = np.array([e.value for e in found]), np.array([e.standard_error for e in found])
    assert np.sqrt((errors**2).mean()) == pytest.approx(values.std(), rel=0.15)
    assert abs(values.mean() - population.truth) < 4 * values.std() / np.sqrt(200)
    held = np.mean([e.low <= population.truth <= e.high for e in found])
    assert held > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize(("outcomes", "value"), [([1, 0, 1, 1] + [np.nan] * 2, 0.3), ([np.nan] * 4 + [0, 1], 0.5)])
def test_wave_without_answers_leaves_the_other(outcomes: list[float], value: float) -> None:
    assert ESTIMATE(by_hand(outcomes)).value == pytest.approx(value)


def test_no_answers_at_all_is_an_error() -> None:
    with pytest.raises(InputError, match="none of the 6 draws"):
        ESTIMATE(by_hand([np.nan] * 6))


def test_random_gaps_leave_the_estimate_unbiased() -> None:
    population = classifier(size=3000, accuracy=0.8)
    rng = np.random.default_rng(8)
    values = []
    for _ in range(300):
        draw = Adaptive(waves=1).draw(population.frame, 200, rng)
        values.append(ESTIMATE(population.answer(draw, 0.7, rng)).value)
    assert abs(np.mean(values) - population.truth) < 4 * np.std(values) / np.sqrt(300)


def test_interval_narrows_with_the_level() -> None:
    sample = whole(classifier(), 200, np.random.default_rng(1))
    wide, narrow = ESTIMATE(sample, 0.99), ESTIMATE(sample, 0.8)
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_two_single_draws_do_not_fail() -> None:
    frame = Frame({"x": np.arange(30.0)})
    draw = Adaptive().draw(frame, 1, np.random.default_rng(0))
    found = ESTIMATE(Sample(draw, np.array([0.0])))
    assert found.value == 1
    assert found.low < 0.3


def test_losses_of_0_and_1_are_losses_where_the_sample_says_so() -> None:
    sample = by_hand([1, 0, 1, 1, 0, 1])
    assert ESTIMATE(replace(sample, problem="classification")).method == "adaptive/score"
    assert ESTIMATE(replace(sample, problem="regression")).method == "adaptive/hall"
