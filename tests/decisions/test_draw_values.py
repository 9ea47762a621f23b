"""What every bet stands on: draws estimate the mean loss, and products of bets have a mean of at most 1."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.abc import Estimator
from opmon.bets import Terms
from opmon.decisions import draw_values as values_of_draws
from opmon.decisions._betting import BETS, log_growth, recovery_growth
from opmon.decisions._bound import Bound
from opmon.decisions._paired import paired_growth
from opmon.decisions.accuracy_slices import AccuracySlices
from opmon.decisions.case import Case
from opmon.decisions.draw_values import DrawValues
from opmon.errors import InputError
from opmon.plugins import make
from opmon.testing.designs import design_of
from opmon.testing.populations import Population, classifier
from opmon.types import Draw, Estimate, Sample

SAMPLERS = ("srs", "sups", "rhc", "two_stage", "deepest", "ssrs", "css", "gbs", "adaptive")


def draw_values(sample: Sample) -> DrawValues:
    return values_of_draws.draw_values(sample, design_of(sample))


def terms(sample: Sample, losses: np.ndarray) -> Terms:
    return values_of_draws.terms(sample, losses, design_of(sample))


_ready: dict[tuple[str, int, int], tuple[Population, Callable[[np.random.Generator], Draw]]] = {}
"""What does not depend on chance is done once. The population is held, so that no other gets its ``id``."""


def sampled(sampler: str, population: Population, budget: int, rng: np.random.Generator) -> Sample:
    """A draw with all its waves."""
    chosen, key = make("sampler", sampler), (sampler, budget, id(population))
    if key not in _ready:
        prepare = getattr(chosen, "prepare", None)
        whole = functools.partial(chosen.draw, population.frame, budget)
        draw = prepare(population.frame, budget) if prepare else lambda rng: whole(rng=rng)
        _ready[key] = (population, draw)
    sample = population.answer(_ready[key][1](rng))
    while len(sample.draw) < budget:
        drawn = chosen.next_batch(population.frame, budget, sample, rng)
        if len(drawn) == len(sample.draw):
            break
        sample = population.answer(drawn)
    return sample


SEEDS, FEWER = 1200, 800


@pytest.fixture(scope="module", params=SAMPLERS)
def samples(request: pytest.FixtureRequest) -> tuple[str, Population, list[Sample]]:
    """Draws of a design from a model with 15 % failures, for all that is said of their mean."""
    population = classifier(500, accuracy=0.85, seed=4)
    return (
        request.param,
        population,
        [sampled(request.param, population, 40, np.random.default_rng(seed)) for seed in range(SEEDS)],
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_staked_mean_is_the_estimate(sampler: str) -> None:
    population = classifier(600, accuracy=0.8, seed=2)
    for seed in range(5):
        sample = sampled(sampler, population, 60, np.random.default_rng(seed))
        drawn = draw_values(sample)
        loss = 1 - make("estimator", sampler).estimate(sample).value
        if sampler == "rhc":
            assert drawn.values.mean() == pytest.approx(loss, rel=0.05), "groups differ by one input"
        else:
            assert drawn.stakes @ drawn.values / drawn.stakes.sum() == pytest.approx(loss)


def test_bets_on_a_model_at_the_line_do_not_grow_on_average(samples: tuple[str, Population, list[Sample]]) -> None:
    """The mean of every e-value is at most 1, within four standard errors: against the model, and on its recovery.

    Bets on recovery are never lost whole, because the most that a value can be is known before the labels.
    """
    sampler, population, drawn_samples = samples
    line = 1 - population.truth
    against, recovered = [], []
    for sample in drawn_samples:
        drawn = draw_values(sample)
        assert drawn.highest is not None
        assert (drawn.values <= drawn.highest + 1e-9).all()
        against.append(np.exp(log_growth(drawn, line, BETS[:5])))
        recovered.append(np.exp(recovery_growth(drawn.values - line, drawn.stakes, drawn.highest - line)))
    for grown in (np.array(against), np.array(recovered)):
        assert np.isfinite(grown).all()
        error = grown.std(axis=0) / math.sqrt(len(grown))
        assert (grown.mean(axis=0) <= 1 + 4 * error).all(), (sampler, grown.mean(axis=0))


@pytest.mark.parametrize("sampler", ["srs", "sups", "ssrs"])
def test_bets_grow_where_the_loss_is_above_the_line(sampler: str) -> None:
    population = classifier(1000, accuracy=0.7, seed=4)
    sample = sampled(sampler, population, 200, np.random.default_rng(0))
    assert log_growth(draw_values(sample), 0.15).max() > 2


def test_by_hand() -> None:
    columns = {"stratum": np.array([0, 0, 1])}
    draw = Draw("ssrs", 10, np.array([0, 1, 9]), columns, {"stratum_size": np.array([8, 2])})
    drawn = draw_values(Sample(draw, np.array([1.0, 0.0, 1.0])))
    assert drawn.values == pytest.approx([3 * 8 / (10 * 2), 0, 3 * 2 / 10])


def test_draws_without_an_answer_are_left_out() -> None:
    draw = Draw("srs", 10, np.arange(3), constants={"replacement": np.array(False)})
    assert len(draw_values(Sample(draw, np.array([1.0, np.nan, 0.0])))) == 2


class Plain(Estimator):
    """An estimator that tells nothing of bets."""

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate: ...


def test_a_design_that_tells_nothing_is_refused_and_not_taken_for_a_simple_one() -> None:
    sample = Sample(Draw("mine", 10, np.arange(4)), np.array([1.0, 0.0, 1.0, 0.0]))
    for design in (Plain(), None):
        with pytest.raises(InputError, match=r"design 'mine'.*accuracy_below"):
            values_of_draws.draw_values(sample, design)
        with pytest.raises(InputError, match="design 'mine'"):
            paired_growth(sample, sample.outcomes, 0.0, design)


@pytest.mark.parametrize("sampler", [*SAMPLERS, "ces"])
def test_every_design_that_is_built_in_tells_its_terms(sampler: str) -> None:
    assert make("estimator", sampler).bets


def test_squared_errors_have_no_highest_value() -> None:
    draw = Draw("srs", 10, np.arange(3), constants={"replacement": np.array(False)})
    assert draw_values(Sample(draw, np.array([0.1, 0.0, 0.4]), "regression")).highest is None
    assert draw_values(Sample(draw, np.array([0.1, 7.0, 0.4]))).highest is None
    assert draw_values(Sample(draw, np.array([1.0, 0.0, 0.0]))).highest is not None


def test_terms_are_linear_in_the_outcome() -> None:
    population = classifier(300, seed=1)
    sample = sampled("deepest", population, 30, np.random.default_rng(3))
    found = terms(sample, sample.outcomes)
    assert found.known + found.factors * sample.outcomes == pytest.approx(draw_values(sample).values)


@given(
    st.lists(st.floats(0, 50), min_size=1, max_size=30),
    st.floats(0.01, 0.9),
    st.floats(0.1, 3),
)
def test_a_stake_is_never_lost_whole(values: list[float], line: float, stake: float) -> None:
    drawn = DrawValues(np.array(values), np.full(len(values), stake))
    assert np.isfinite(log_growth(drawn, line)).all()


def test_bets_on_equal_versions_do_not_grow_on_average(samples: tuple[str, Population, list[Sample]]) -> None:
    """Two versions with as many failures on other inputs: the paired e-values have a mean of at most 1."""
    sampler, population, drawn_samples = samples
    other = np.random.default_rng(9).permutation(population.outcomes)
    grown = []
    for sample in drawn_samples[:FEWER]:
        paired = paired_growth(sample, sample.outcomes - other[sample.draw.positions], 0.0, design_of(sample))
        assert paired is not None
        grown.append(np.exp(paired[0].alarm[:5]))
    error = np.std(grown, axis=0) / math.sqrt(len(grown))
    assert (np.mean(grown, axis=0) <= 1 + 4 * error).all(), (sampler, np.mean(grown, axis=0))


def test_slices_at_the_line_do_not_grow_on_average(samples: tuple[str, Population, list[Sample]]) -> None:
    """The evidence of one round in every slice has the mean of its weight at most."""
    sampler, population, drawn_samples = samples
    predictions = population.frame.predictions
    assert predictions is not None
    inside = predictions < 3
    line = 1 - float(population.outcomes[inside].mean())
    rule = AccuracySlices(line, classes=("in",))
    found = []
    for sample in drawn_samples[:FEWER]:
        classes = np.where(inside[sample.draw.positions], "in", "out")
        estimate = Estimate(0.8, 0.7, 0.9, n=40, frame_size=500, response=1.0, method=sampler)
        verdict = rule.judge(Case(1, (estimate,), sample, design_of(sample), classes=classes))
        found.append(verdict.details["of"]["in"]["evidence"])
    weight = Bound(alpha=0.05).weight(0, None)
    assert np.mean(found) <= weight * (1 + 4 * np.std(found) / weight / math.sqrt(len(found)))


def test_answered_counts_take_the_place_of_drawn_ones() -> None:
    columns = {"stratum": np.array([0, 0, 0, 1, 1])}
    draw = Draw("ssrs", 10, np.arange(5), columns, {"stratum_size": np.array([8, 2])})
    drawn = draw_values(Sample(draw, np.array([1.0, np.nan, np.nan, 1.0, 0.0])))
    assert drawn.values == pytest.approx([3 * 8 / (10 * 1), 3 * 2 / (10 * 2), 0])


def test_a_stratum_without_an_answer_is_carried_by_its_neighbour() -> None:
    columns = {"stratum": np.array([0, 1, 2, 2])}
    draw = Draw("ssrs", 10, np.arange(4), columns, {"stratum_size": np.array([5, 3, 2])})
    drawn = draw_values(Sample(draw, np.array([1.0, np.nan, 1.0, 1.0])))
    assert drawn.values == pytest.approx([3 * 8 / 10, 3 * 2 / 20, 3 * 2 / 20])


def test_answers_inside_a_stratum_weigh_by_the_inverse_of_their_propensity() -> None:
    draw = Draw("srs", 10, np.arange(3), constants={"replacement": np.array(False)})
    sample = Sample(draw, np.array([1.0, 1.0, np.nan]), propensity=np.array([0.9, 0.3, 0.3]))
    assert draw_values(sample).values == pytest.approx([0.5, 1.5])


def test_a_wave_that_nobody_answered_leaves_its_weight_to_the_others() -> None:
    columns = {"wave": np.array([0, 0, 1, 1]), "stratum": np.array([0, 0, 1, 1])}
    constants = {
        "stratum_size": np.array([10, 8]),
        "stratum_wave": np.array([0, 1]),
        "wave_share": np.array([0.3, 1.0]),
    }
    draw = Draw("adaptive", 10, np.arange(4), columns, constants)
    drawn = draw_values(Sample(draw, np.array([1.0, 0.0, np.nan, np.nan])))
    assert drawn.values == pytest.approx([1, 0])
    assert drawn.stakes == pytest.approx([1, 1])


def suspicious(draw: Draw) -> np.ndarray:
    """Which draws are in the upper half of the strata of their wave."""
    stratum, wave = draw.columns["stratum"], draw.columns.get("wave", np.zeros(len(draw), dtype=int))
    middle = np.array([(stratum[wave == t].min() + stratum[wave == t].max()) / 2 for t in np.unique(wave)])
    return stratum > middle[wave]


@pytest.mark.parametrize("sampler", ["sups", "rhc", "two_stage", "deepest", "ssrs", "css", "gbs", "adaptive"])
def test_bets_do_not_grow_where_trusted_strata_seldom_answer(sampler: str) -> None:
    """Half of the trusted half of the strata has an answer, 95 % of the other: no growth at the line on average."""
    population = classifier(500, accuracy=0.85, seed=4)
    line, grown = 1 - population.truth, []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        sample = sampled(sampler, population, 80, rng)
        heard = rng.random(len(sample.draw)) < np.where(suspicious(sample.draw), 0.95, 0.5)
        silent = Sample(sample.draw, np.where(heard, sample.outcomes, np.nan))
        grown.append(np.exp(log_growth(draw_values(silent), line, BETS[:5])))
    error = np.std(grown, axis=0) / math.sqrt(len(grown))
    assert (np.mean(grown, axis=0) <= 1 + 4 * error).all(), (sampler, np.mean(grown, axis=0))
