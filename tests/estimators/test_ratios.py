from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators._answers import loss_of
from opmon.estimators._losses import EQUAL, UNBOUNDED
from opmon.estimators.ratios import class_accuracy, precision, ratio, recall, slice_accuracy
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.estimators.stratified import StratifiedEstimator
from opmon.quantities import ACCURACY, MEAN_SQUARED_ERROR
from opmon.samplers._checks import ByVariable, Prepared
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Draw, Sample

SRS, REPETITIONS = SimpleRandomEstimator(), 100


def srs(outcomes: list[float], N: int = 1000) -> Sample:
    return Sample(
        Draw("srs", N, np.arange(len(outcomes)), constants={"replacement": np.array(True)}), np.array(outcomes)
    )


def test_slice_of_a_simple_random_sample_is_the_plain_share() -> None:
    sample = srs([1, 0, 0, 1, 1, 0])
    found = slice_accuracy(SRS, sample, np.array([True, True, True, True, False, False]), "night")
    assert found.value == pytest.approx(0.5)
    assert found.n == 4
    assert found.quantity == ACCURACY.of("night")


def test_slice_of_everything_is_the_estimate_itself() -> None:
    sample = srs([1, 0, 0, 1, 1, 0, 0, 0])
    found, whole = slice_accuracy(SRS, sample, np.ones(8, dtype=bool), "all"), SRS.estimate(sample)
    assert found.value == pytest.approx(whole.value)
    assert found.standard_error == pytest.approx(whole.standard_error)


def test_precision_and_recall_worked_by_hand() -> None:
    truth = np.array(["cat", "cat", "dog", "dog", "cat", "dog"])
    predicted = np.array(["cat", "dog", "cat", "dog", "cat", "dog"])
    sample = srs((truth != predicted).astype(float).tolist())
    assert precision(SRS, sample, predicted, truth, "cat").value == pytest.approx(2 / 3)
    assert recall(SRS, sample, predicted, truth, "cat").value == pytest.approx(2 / 3)
    assert precision(SRS, sample, predicted, truth, "dog").quantity.name == "precision[dog]"


def test_class_accuracy_leaves_out_classes_without_an_answer() -> None:
    found = class_accuracy(SRS, srs([1, 0, np.nan, 0]), np.array([3, 3, 5, 7]))
    assert {name: estimate.value for name, estimate in found.items()} == {3: 0.5, 7: 1.0}


def test_slice_without_an_answer_is_an_error() -> None:
    with pytest.raises(InputError, match="night"):
        slice_accuracy(SRS, srs([1, 0]), np.array([False, False]), "night")


def test_ratio_wants_one_entry_per_draw() -> None:
    with pytest.raises(InputError, match="per draw"):
        ratio(SRS, srs([1, 0]), np.zeros(3), np.ones(3, dtype=bool), ACCURACY)


@cache
def first_wave(name: str, population: Population, budget: int, **options: object) -> Prepared:
    """The first wave of a draw, with what does not depend on chance done once."""
    sampler = plugins.make("sampler", name, options)
    if isinstance(sampler, ByVariable):
        return sampler.prepare(population.frame, budget)
    return lambda rng: sampler.draw(population.frame, budget, rng)


def drawn(name: str, population: Population, budget: int, seed: int, **options: object) -> Sample:
    sampler, rng = plugins.make("sampler", name, options), np.random.default_rng(seed)
    draw = first_wave(name, population, budget, **options)(rng)
    while hasattr(sampler, "next_batch") and len(draw) < budget:
        draw = sampler.next_batch(population.frame, budget, population.answer(draw), rng)
    return population.answer(draw)


@pytest.mark.parametrize(
    "population", [classifier(size=200, seed=1), regressor(size=200, seed=1)], ids=["share", "loss"]
)
def test_slice_of_a_frame_that_was_drawn_whole_is_known_exactly(population: Population) -> None:
    sample = drawn("adaptive", population, 200, seed=1)
    members = np.arange(200) % 15 == 3
    estimator = plugins.make("estimator", sample.draw.design)
    found = slice_accuracy(estimator, sample, members[sample.draw.positions], "x")
    assert found.value == pytest.approx(Population(population.frame, population.outcomes[members]).truth)
    assert (found.low, found.high) == (found.value, found.value)


@pytest.mark.parametrize("outcomes", [[0.0] * 20, [1.0] * 3 + [0.0] * 17, [0.3] * 5 + [2.5] * 15])
def test_slice_of_a_stratum_that_was_drawn_whole_is_known_exactly(outcomes: list[float]) -> None:
    stratum, sizes = np.repeat([0, 1], [5, 15]), np.array([5, 500])
    draw = Draw("ssrs", 505, np.arange(20), {"stratum": stratum}, {"stratum_size": sizes})
    found = slice_accuracy(StratifiedEstimator(), Sample(draw, np.array(outcomes)), stratum == 0, "x")
    assert loss_of(found)[0] == pytest.approx(np.mean(outcomes[:5]))
    assert (found.low, found.high, found.notes) == (found.value, found.value, ())


def test_slice_narrows_as_the_frame_is_used_up() -> None:
    outcomes = np.repeat([1.0, 0.0], [12, 88])
    draws = [Draw("srs", N, np.arange(100), constants={"replacement": np.array(False)}) for N in (10**6, 105)]
    far, near = (slice_accuracy(SRS, Sample(draw, outcomes), np.arange(100) % 2 == 0, "x") for draw in draws)
    assert near.half_width == pytest.approx(far.half_width * np.sqrt(1 - 100 / 105), rel=0.1)


def test_slice_of_right_answers_alone_is_not_lost_to_rounding() -> None:
    for members in range(2, 100):
        found = slice_accuracy(SRS, srs([0.0] * 100), np.arange(100) < members, "x")
        assert found.value == found.high == 1.0
        assert found.low >= members / (members + 170)


@pytest.mark.parametrize("loss", [0.3, 0.0, 1.0])
def test_slice_of_a_single_loss_has_no_upper_bound(loss: float) -> None:
    sample = replace(srs([0.1, 2.0, loss, 0.4]), problem="regression")
    found = slice_accuracy(SRS, sample, np.arange(4) == 2, "x")
    assert (found.low, found.value, found.high) == (0.0, loss, np.inf)
    assert found.quantity == MEAN_SQUARED_ERROR.of("x")
    assert found.notes[0] == UNBOUNDED
    assert found.notes[1].startswith("too few to say: only 1 answered draw counts for it")


def test_slice_of_equal_losses_has_no_upper_bound() -> None:
    sample = replace(srs([0.4] * 20 + [2.0, 3.0]), problem="regression")
    found = slice_accuracy(SRS, sample, np.arange(22) < 20, "x")
    assert found.high == np.inf
    assert 0.28 < found.low < 0.4
    assert found.notes == (EQUAL,)


def test_slice_of_a_regression_is_none_of_a_classifier() -> None:
    outcomes = [1.0, 0.0] * 10 + [4.0] * 5
    found = slice_accuracy(SRS, replace(srs(outcomes), problem="regression"), np.arange(25) < 20, "x")
    share = slice_accuracy(SRS, srs(outcomes[:20]), np.arange(20) < 20, "x")
    assert found.value == pytest.approx(1 - share.value)
    assert found.half_width > share.half_width


@pytest.mark.parametrize("seed", range(5))
def test_slice_of_losses_is_never_better_than_right(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sample = replace(srs((rng.normal(size=12) ** 8).tolist()), problem="regression")
    assert slice_accuracy(SRS, sample, np.arange(12) < 6, "x").low >= 0


def test_slice_of_huge_losses_scales() -> None:
    outcomes = np.random.default_rng(1).random(40)
    small, huge = (
        slice_accuracy(
            SRS, replace(srs(list(np.ldexp(outcomes, power))), problem="regression"), np.arange(40) < 20, "x"
        )
        for power in (60, 1000)
    )
    for bound in ("value", "high", "standard_error"):
        assert np.ldexp(getattr(huge, bound), 60 - 1000) == pytest.approx(getattr(small, bound))


def test_slice_refuses_a_level_that_is_none() -> None:
    with pytest.raises(InputError, match="level"):
        slice_accuracy(SRS, srs([1, 0, 1]), np.ones(3, dtype=bool), "x", level=1.0)


def study(
    name: str, population: Population, members: np.ndarray, budget: int, **options: object
) -> tuple[int, np.ndarray]:
    """How many intervals hold the truth, and the errors."""
    truth = Population(population.frame, population.outcomes[members]).truth
    held, errors, estimator = 0, [], plugins.make("estimator", name)
    for seed in range(REPETITIONS):
        sample = drawn(name, population, budget, seed, **options)
        found = slice_accuracy(estimator, sample, members[sample.draw.positions], "low")
        held += found.low <= truth <= found.high
        errors.append(found.value - truth)
    return held, np.array(errors)


ENOUGH = stats.binom.ppf(0.0005, REPETITIONS, 0.95)


@pytest.mark.parametrize("name", ["srs", "sups", "ssrs", "deepest", "two_stage", "rhc", "adaptive", "gbs"])
def test_slices_are_covered_under_every_design(name: str) -> None:
    population = classifier(size=3000, accuracy=0.85, seed=2)
    held, errors = study(name, population, population.frame.predictions < 3, 200)  # type: ignore[operator]
    assert held >= ENOUGH
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(REPETITIONS)


@pytest.mark.parametrize("options", [{"defensive": 0.0}, {"defensive": 0.1}])
def test_slices_are_covered_where_weights_are_unequal(options: dict[str, float]) -> None:
    population = classifier(size=5000, accuracy=0.9, seed=4)
    members = np.random.default_rng(9).integers(0, 5, 5000) == 0
    assert study("sups", population, members, 400, **options)[0] >= ENOUGH


@pytest.mark.parametrize("name", ["srs", "sups", "adaptive", "gbs"])
def test_slices_of_skewed_losses_are_covered(name: str) -> None:
    population = regressor(size=5000, seed=3)
    members = np.random.default_rng(1).random(5000) < 0.1
    assert study(name, population, members, 200)[0] >= ENOUGH
