from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from opmon.estimators.gbs import GradientBasedEstimator
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.estimators.stratified import StratifiedEstimator
from opmon.samplers.gbs import GradientBased
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Draw, Sample


def stratified(strata: list[int], sizes: list[int], outcomes: list[float]) -> Sample:
    draw = Draw(
        "ssrs",
        sum(sizes),
        np.arange(len(strata)),
        {"stratum": np.array(strata)},
        {"stratum_size": np.array(sizes)},
    )
    return Sample(draw, np.array(outcomes))


def test_stratified_worked_by_hand() -> None:
    found = StratifiedEstimator().estimate(stratified([0, 0, 1, 1], [60, 40], [1, 0, 1, 1]))
    assert found.value == pytest.approx(1 - (0.6 * 0.5 + 0.4 * 1.0))
    # 0.6² · (1 − 2/60) · 0.5/2 + 0
    assert found.standard_error == pytest.approx(np.sqrt(0.36 * (1 - 2 / 60) * 0.25))


def test_stratified_with_one_stratum_is_simple_random_sampling() -> None:
    y = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    one = StratifiedEstimator().estimate(stratified([0] * 7, [50], y))
    draw = Draw("srs", 50, np.arange(7), constants={"replacement": np.array(False)})
    other = SimpleRandomEstimator().estimate(Sample(draw, np.array(y)))
    assert one.value == pytest.approx(other.value)
    assert one.standard_error == pytest.approx(other.standard_error)


def test_stratified_census_of_every_stratum_is_exact() -> None:
    found = StratifiedEstimator().estimate(stratified([0, 0, 1, 1, 1], [2, 3], [1, 0, 1, 1, 0]))
    assert found.low == pytest.approx(found.value) == pytest.approx(found.high) == pytest.approx(0.4)


def test_stratified_a_stratum_drawn_whole_adds_no_width() -> None:
    partly = StratifiedEstimator().estimate(stratified([0] * 10 + [1] * 10, [500, 20], [0.0] * 15 + [1.0] * 5))
    whole = StratifiedEstimator().estimate(stratified([0] * 10 + [1] * 10, [500, 10], [0.0] * 15 + [1.0] * 5))
    assert whole.half_width < partly.half_width


def test_stratified_a_silent_stratum_is_not_forgotten_by_the_interval() -> None:
    found = StratifiedEstimator().estimate(stratified([0] * 30 + [1] * 2, [500, 500], [0.0] * 30 + [np.nan] * 2))
    assert found.value == 1.0
    assert found.low < 0.5


def test_stratified_a_silent_stratum_of_losses_may_hold_the_largest_loss() -> None:
    y = [0.1, 0.2, 0.3, 2.0, 0.2, 0.1]
    seen = StratifiedEstimator().estimate(stratified([0] * 6, [500], y))
    found = StratifiedEstimator().estimate(stratified([0] * 6 + [1] * 2, [500, 500], [*y, np.nan, np.nan]))
    assert found.value == pytest.approx(seen.value)
    assert found.high == pytest.approx(0.5 * seen.high + 0.5 * 2.0)
    assert found.low == pytest.approx(0.5 * seen.low)
    assert found.notes == (
        "strata of 50 % of the inputs have no answer; "
        "their mean loss is only taken to be no larger than the largest loss seen",
        "2 of 8 draws have no answer; the others of their stratum stand in",
    )


def test_stratified_equal_losses_of_every_stratum_say_nothing_of_larger_ones() -> None:
    found = StratifiedEstimator().estimate(stratified([0] * 9 + [1] * 9, [500, 500], [0.1] * 9 + [0.4] * 9))
    assert found.high == np.inf
    assert found.value == pytest.approx(0.25)
    assert 0 < found.low < found.value
    whole = StratifiedEstimator().estimate(stratified([0] * 9 + [1] * 9, [9, 9], [0.1] * 9 + [0.4] * 9))
    assert whole.low == pytest.approx(whole.high)


def test_gbs_is_exactly_unbiased_though_allocation_follows_the_labels() -> None:
    """Two strata of three; wave 1 takes one of each, wave 2 gives its two free draws to the stratum that failed."""
    y = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    values, chances = [], []
    for first in itertools.permutations(range(3)):
        for second in itertools.permutations(range(3, 6)):
            more_in_first = y[first[0]] >= y[second[0]]
            extra = (2, 1) if more_in_first else (1, 2)
            positions = [first[0], second[0], *first[1 : 1 + extra[0]], *second[1 : 1 + extra[1]]]
            strata = [0, 1] + [0] * extra[0] + [1] * extra[1]
            draw = Draw(
                "gbs",
                6,
                np.array(positions),
                {"stratum": np.array(strata), "wave": np.array([0, 0, 1, 1, 1])},
                {"stratum_size": np.array([3, 3])},
            )
            values.append(GradientBasedEstimator().estimate(Sample(draw, y[positions])).value)
            chances.append(1 / 36)
    assert float(np.dot(values, chances)) == pytest.approx(1 - y.mean())
    assert np.std(values) > 0


def test_gbs_is_exactly_unbiased_though_a_stratum_is_drawn_whole_where_it_failed() -> None:
    """Strata of three and five, three waves; a failure in the first wave exhausts the small one in the second."""
    y = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    values = []
    for a in itertools.permutations(range(3)):
        for b in itertools.permutations(range(3, 8), 4):
            if y[a[0]]:
                positions, wave = [a[0], b[0], a[1], a[2], b[1], b[2], b[3]], [0, 0, 1, 1, 1, 2, 2]
            else:
                positions, wave = [a[0], b[0], a[1], b[1], b[2], a[2], b[3]], [0, 0, 1, 1, 1, 2, 2]
            columns = {"stratum": (np.array(positions) >= 3).astype(int), "wave": np.array(wave)}
            draw = Draw("gbs", 8, np.array(positions), columns, {"stratum_size": np.array([3, 5])})
            sample = Sample(draw, y[positions])
            values.append(GradientBasedEstimator().coefficients(sample) @ sample.outcomes)
    assert np.mean(values) == pytest.approx(y.mean())


@pytest.mark.parametrize(("N", "n"), [(300, 200), (300, 250), (1000, 900)])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_gbs_holds_its_promises_where_strata_are_drawn_whole(make: Callable[..., Population], N: int, n: int) -> None:
    population, repetitions = make(size=N, seed=3), 100
    errors, spread, held = np.empty(repetitions), np.empty(repetitions), 0
    for k in range(repetitions):
        rng = np.random.default_rng([k, n])
        draw = GradientBased().draw(population.frame, n, rng)
        while len(draw) < n:
            draw = GradientBased().next_batch(population.frame, n, population.answer(draw), rng)
        found = GradientBasedEstimator().estimate(population.answer(draw))
        errors[k], spread[k] = found.value - population.truth, found.standard_error or 0.0
        held += found.low <= population.truth <= found.high
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(repetitions)
    assert np.sqrt((spread**2).mean()) == pytest.approx(errors.std(), rel=0.25)
    assert held >= stats.binom.ppf(0.0005, repetitions, 0.95)


def test_gbs_losses_of_0_and_1_are_losses_where_the_sample_says_so() -> None:
    population = classifier(size=200)
    sample = population.answer(GradientBased().draw(population.frame, 100, np.random.default_rng(1)))
    assert GradientBasedEstimator().estimate(replace(sample, problem="regression")).method == "gbs/hall"


def test_gbs_a_silent_stratum_may_hold_the_largest_loss_seen() -> None:
    population = regressor(size=400)
    sample = population.answer(GradientBased(strata=2).draw(population.frame, 100, np.random.default_rng(1)))
    stratum = sample.draw.columns["stratum"]
    part = Sample(sample.draw, np.where(stratum == 0, sample.outcomes, np.nan))
    found = GradientBasedEstimator().estimate(part)
    share = sample.draw.constants["stratum_size"][1] / 400
    assert found.high > share * np.nanmax(part.outcomes)
    assert any("no answer; their mean loss" in note for note in found.notes)


def test_gbs_estimates_after_every_wave() -> None:
    population, rng = classifier(size=200, seed=3), np.random.default_rng(1)
    draw = GradientBased().draw(population.frame, 150, rng)
    while len(draw) < 150:
        a = GradientBasedEstimator().coefficients(population.answer(draw))
        assert a.sum() == pytest.approx(1)
        draw = GradientBased().next_batch(population.frame, 150, population.answer(draw), rng)


def test_gbs_with_one_wave_is_the_stratified_mean() -> None:
    plain = stratified([0, 0, 1, 1], [60, 40], [1, 0, 1, 0])
    columns = {"stratum": plain.draw.columns["stratum"], "wave": np.zeros(4, dtype=np.int64)}
    draw = Draw("gbs", 100, plain.draw.positions, columns, plain.draw.constants)
    one, other = GradientBasedEstimator().estimate(Sample(draw, plain.outcomes)), StratifiedEstimator().estimate(plain)
    assert one.value == pytest.approx(other.value)
    assert one.standard_error == pytest.approx(other.standard_error, rel=0.02)
