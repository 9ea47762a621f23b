"""Advice on the sampler, and the budget a half-width needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opmon import plugins
from opmon.errors import InputError
from opmon.quantities import MEAN_SQUARED_ERROR
from opmon.samplers.advisor import advise
from opmon.samplers.planning import plan
from opmon.samplers.widths import gain, gain_of, plain_half_width, spread_of, telling_of
from opmon.testing.populations import classifier
from opmon.types import Estimate


def test_small_frame_is_labelled_whole() -> None:
    assert advise(100, 100, variables=["confidence"]).sampler == "srs"


def test_without_variables_it_is_simple_random_sampling() -> None:
    assert advise(10_000, 200).sampler == "srs"


def test_default_is_our_own() -> None:
    found = advise(10_000, 200, variables=["confidence", "dsa"], aim=0.3)
    assert (found.sampler, found.parameters) == ("adaptive", {"aim": 0.3})
    assert any("2 variables" in reason for reason in found.reasons)


def test_labels_that_do_not_come_back_mean_one_wave() -> None:
    found = advise(10_000, 200, variables=["confidence"], waves=False)
    assert found.parameters["waves"] == 1
    assert "gbs" not in [other.sampler for other in found.alternatives]


@pytest.mark.parametrize("problem", ["classification", "regression"])
@pytest.mark.parametrize("aim", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("waves", [True, False])
def test_everything_advised_can_be_made(problem: Any, aim: float, waves: bool) -> None:
    found = advise(5000, 60, problem=problem, variables=["lsa"], aim=aim, waves=waves)
    plugins.make("sampler", found.sampler, found.parameters)
    for other in found.alternatives:
        plugins.make("sampler", other.sampler, other.parameters)


@pytest.mark.parametrize(
    ("size", "budget", "given"),
    [(0, 10, {}), (100, 0, {}), (100, 10, {"aim": 2.0}), (100, 10, {"problem": "ranking"})],
)
def test_wrong_question_is_an_error(size: int, budget: int, given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        advise(size, budget, **given)


@pytest.mark.parametrize("accuracy", [0.5, 0.8, 0.99])
def test_planned_budget_is_the_least(accuracy: float) -> None:
    found = plan(0.04, 20_000, accuracy=accuracy, variables=0)
    assert found.half_width <= 0.04
    assert found.budget == found.plain_budget
    assert plan(found.half_width * 0.999, 20_000, accuracy=accuracy, variables=0).budget > found.budget


def test_planned_half_width_is_what_simple_random_sampling_gives() -> None:
    found = plan(0.05, 5000, accuracy=0.9, variables=0)
    srs, estimator = plugins.make("sampler", "srs"), plugins.make("estimator", "srs", {"interval": "wilson"})
    population = classifier(size=5000, accuracy=0.9)
    rng = np.random.default_rng(0)
    widths = [
        estimator.estimate(population.answer(srs.draw(population.frame, found.budget, rng))).half_width
        for _ in range(300)
    ]
    assert np.mean(widths) == pytest.approx(0.05, rel=0.05)


def test_variables_save_labels_once_they_are_known_to_tell() -> None:
    found = plan(0.03, 100_000, accuracy=0.8)
    assert found.budget > found.plain_budget, "nobody knows yet that they tell: nothing is promised of it"
    known = plan(0.03, 100_000, accuracy=0.8, telling=1.0)
    assert known.budget == found.hopeful_budget < 0.85 * found.plain_budget
    assert known.hopeful_budget is None


def test_exposing_failures_costs_labels() -> None:
    budgets = [plan(0.03, 100_000, accuracy=0.9, aim=aim).budget for aim in (0.0, 0.5, 0.75, 1.0)]
    assert budgets == sorted(budgets)
    assert budgets[-1] > 2.4 * budgets[0]


@pytest.mark.parametrize("aim", [0.5, 1.0])
def test_promises_are_kept_where_the_variables_say_nothing(aim: float) -> None:
    """0.014 (at 0.5) to 0.03 (at 1) more than the promised 0.05 with what other models' variables gave."""
    population = classifier(size=5000, accuracy=0.9, informative=0.0, seed=7)
    planned = plan(0.05, 5000, accuracy=0.9, aim=aim)
    sampler, estimator = plugins.make("sampler", "adaptive", {"aim": aim}), plugins.make("estimator", "adaptive")
    widths = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        draw = sampler.draw(population.frame, planned.budget, rng)
        draw = sampler.next_batch(population.frame, planned.budget, population.answer(draw), rng)
        widths.append(estimator.estimate(population.answer(draw)).half_width)
    assert np.mean(widths) < 1.05 * planned.half_width


def test_unknown_accuracy_plans_for_the_worst() -> None:
    assert plan(0.03, 100_000).budget >= plan(0.03, 100_000, accuracy=0.7).budget
    assert "0.5" in plan(0.03, 100_000).notes[0]


def test_narrow_interval_of_a_small_frame_is_a_census() -> None:
    assert plan(1e-6, 300, accuracy=0.9).budget == 300


def test_regression_needs_the_spread() -> None:
    with pytest.raises(InputError, match="earlier round"):
        plan(0.1, 1000, problem="regression")
    plain = plan(0.1, 10**6, problem="regression", spread=1.0, variables=0)
    assert plain.budget == pytest.approx(385, abs=2)
    tilted = [plan(0.1, 10**6, problem="regression", spread=1.0, aim=aim).budget for aim in (0.0, 1.0)]
    assert plain.budget < tilted[0] < tilted[1] / 3


@pytest.mark.parametrize(
    "given", [{"half_width": 0.0}, {"accuracy": 1.2}, {"level": 1.0}, {"size": 0}, {"aim": 1.5}, {"telling": 9.0}]
)
def test_wrong_plan_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        plan(**{"half_width": 0.05, "size": 1000, **given})


def test_earlier_rounds_tell_how_many_labels_the_next_needs() -> None:
    unknown, nothing, usual, most = (plan(0.03, 100_000, accuracy=0.9, telling=t) for t in (None, 0.0, 1.0, 1.5))
    assert unknown.budget == nothing.budget > usual.budget > most.budget


@pytest.mark.parametrize("aim", [0.0, 0.5, 1.0])
def test_what_rounds_told_is_what_the_next_is_planned_with(aim: float) -> None:
    for telling in (0.0, 0.6, 1.0):
        width = plain_half_width(0.1, 200, 10_000, 0.95) * gain(200, aim, telling)
        rounds = [Estimate(0.9, 0.9 - width, 0.9 + width, 200, 10_000, 1.0, "adaptive/score")] * 3
        assert telling_of(rounds, aim) == pytest.approx(telling)
    assert telling_of([], aim) is None


def test_spread_of_a_round_plans_its_own_interval_again() -> None:
    for method, variables in (("srs/hall", 0), ("adaptive/hall", 2)):
        one = Estimate(0.5, 0.4, 0.62, 200, 10_000, 1.0, method, quantity=MEAN_SQUARED_ERROR)
        again = plan(
            0.11, 10_000, problem="regression", spread=spread_of(one, 0.5), variables=variables, aim=0.5, level=0.95
        )
        assert again.budget == pytest.approx(200, abs=1)
    unbounded = Estimate(0.5, 0.4, np.inf, 200, 10_000, 1.0, "srs/hall", quantity=MEAN_SQUARED_ERROR)
    assert spread_of(unbounded, 0.5) is None


def test_rounds_that_were_all_wrong_or_hardly_answered_do_not_upset_the_plan() -> None:
    wrong = Estimate(-2e-16, -2e-16, 0.05, 200, 10_000, 1.0, "adaptive/score")
    silent = Estimate(0.9, 0.8, 0.99, 200, 10_000, 0.25, "adaptive/score")
    assert gain_of([wrong]) is not None
    assert gain_of([silent]) is None
    most = gain_of([Estimate(0.9, 0.86, 0.94, 200, 10_000, 0.95, "adaptive/score")])
    assert most == gain_of([Estimate(0.9, 0.86, 0.94, 190, 10_000, 1.0, "adaptive/score")])


@pytest.mark.parametrize(("aim", "least"), [(0.5, 80), (1.0, 20)])
def test_advice_knows_when_there_are_two_waves(aim: float, least: int) -> None:
    def words(budget: int) -> str:
        return " ".join(advise(10_000, budget, variables=["confidence"], aim=aim).reasons)

    assert f"below {least} is drawn at once" in words(least - 1)
    assert "two waves" in words(least)


def test_gain_is_read_off_the_adaptive_samplers_estimates() -> None:
    plain = Estimate(0.9, 0.86, 0.93, 200, 10_000, 1.0, "srs/wilson")
    narrow, wide = (Estimate(0.9, 0.9 - h, 0.9 + h, 200, 10_000, 1.0, "adaptive/score") for h in (0.02, 0.05))
    assert gain_of([plain]) is None
    assert gain_of([narrow, plain]) == gain_of([narrow])
    assert gain_of([narrow, wide]) == pytest.approx(1.75 * (gain_of([narrow]) or 0))
