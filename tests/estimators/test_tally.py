"""Rounds as one from their draws: identities, what is joined, and seeded studies of coverage and width."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from opmon.estimators import SimpleRandomEstimator
from opmon.estimators._counts import mid_p
from opmon.estimators.rolling import combine
from opmon.estimators.tally import Tally, together
from opmon.plugins import make
from opmon.store import tallies
from opmon.testing.populations import Population, classifier, regressor
from opmon.types import Draw, Sample

DESIGNS = ("adaptive", "srs", "ssrs", "css", "gbs", "sups", "rhc", "two_stage", "deepest")


def drawn(design: str, population: Population, budget: int, rng: np.random.Generator, problem: str) -> Sample:
    chosen = make("sampler", design)
    draw = chosen.draw(population.frame, budget, rng)
    while len(draw) < budget:
        draw = chosen.next_batch(population.frame, budget, population.answer(draw), rng)
    return Sample(draw, population.outcomes[draw.positions], problem)  # type: ignore[arg-type]


def counted(failures: int, n: int, N: int = 10**6) -> Sample:
    draw = Draw("srs", N, np.arange(n), constants={"replacement": np.array(True)})
    return Sample(draw, (np.arange(n) < failures) * 1.0, "classification")


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("problem", ["classification", "regression"])
def test_a_tally_tells_the_mean_loss(design: str, problem: str) -> None:
    """Exactly, but for designs of unequal probabilities, whose shares are post-stratified."""
    population = classifier(1000, seed=2) if problem == "classification" else regressor(1000, seed=2)
    sample = drawn(design, population, 120, np.random.default_rng(3), problem)
    estimator = make("estimator", design)
    tally, loss = estimator.tally(sample), float(estimator.coefficients(sample) @ sample.outcomes)
    tolerance = 0.1 if design in DESIGNS[5:] and problem == "classification" else 1e-9
    assert tally.known + tally.share @ tally.mean == pytest.approx(loss, abs=tolerance)


@pytest.mark.parametrize("design", ["adaptive", "srs", "ssrs", "gbs"])
@pytest.mark.parametrize("problem", ["classification", "regression"])
def test_a_frame_that_was_drawn_whole_leaves_no_width(design: str, problem: str) -> None:
    population = classifier(60, seed=2) if problem == "classification" else regressor(60, seed=2)
    sample = drawn(design, population, 60, np.random.default_rng(3), problem)
    tally = make("estimator", sample.draw.design).tally(sample)
    low, high, _ = together([tally, tally], [0.5, 0.5], 0.95, binary=problem == "classification")
    assert low == pytest.approx(high)
    assert low == pytest.approx(float(population.outcomes.mean()))


def test_equal_simple_random_rounds_are_one_sample() -> None:
    rounds = [counted(failures, 40) for failures in (0, 1, 0, 2)]
    found = together([SimpleRandomEstimator().tally(one) for one in rounds], [0.25] * 4, 0.95, binary=True)
    assert found[:2] == pytest.approx(mid_p(3, 160, 0.95))


def test_parts_at_one_place_are_joined_and_others_until_they_hold_enough() -> None:
    share, rate = np.array([0.5, 0.5]), np.array([0.0, 0.5])
    few = Tally.of_shares(share, np.array([3.0, 3.0]), rate)
    many = Tally.of_shares(share, np.array([300.0, 300.0]), rate)
    apart = together([many], [1.0], 0.95, binary=True)
    mixed = together([few], [1.0], 0.95, binary=True)
    assert mixed[:2] == pytest.approx(mid_p(1.5, 6, 0.95)), "three draws do not stand alone"
    assert apart[1] - apart[0] < np.diff(mid_p(150, 600, 0.95))[0], "two strata tell more than their mixture"


def test_a_part_without_a_draw_is_like_those_of_other_rounds() -> None:
    share, rate = np.array([0.5, 0.5]), np.array([0.0, 0.1])
    silent = Tally.of_shares(share, np.array([0.0, 50.0]), rate)
    heard = Tally.of_shares(share, np.array([50.0, 50.0]), rate)
    alone = together([silent], [1.0], 0.95, binary=True)
    both = together([silent, heard], [0.5, 0.5], 0.95, binary=True)
    assert both[1] - both[0] < 0.6 * (alone[1] - alone[0])


def test_losses_of_any_size_have_no_tally() -> None:
    draw = Draw("srs", 1000, np.arange(4), constants={"replacement": np.array(True)})
    assert SimpleRandomEstimator().tally(Sample(draw, np.array([1e200, 1.0, 2.0, 3.0]), "regression")) is None


def test_a_round_without_a_tally_is_joined_by_its_width() -> None:
    estimator, rounds = SimpleRandomEstimator(), [counted(2, 50), counted(4, 50)]
    estimates, known = [estimator.estimate(one) for one in rounds], [estimator.tally(one) for one in rounds]
    assert combine(estimates, [known[0], None]) == combine(estimates)
    assert combine(estimates, known) != combine(estimates)
    assert combine(estimates[:1], known[:1]).low == estimates[0].low


def test_a_tally_survives_the_database() -> None:
    sample = drawn("adaptive", regressor(500, seed=1), 100, np.random.default_rng(1), "regression")
    tally = make("estimator", "adaptive").tally(sample)
    back = tallies.unpack(tallies.pack(tally))
    assert together([back], [1.0], 0.95, binary=False) == together([tally], [1.0], 0.95, binary=False)


@pytest.mark.parametrize("accuracy", [0.998, 0.9995])
def test_five_rounds_of_a_nearly_perfect_model_cover(accuracy: float) -> None:
    """Over the numbers of failures in 5 × 50 draws; 0.86 with intervals joined by their widths."""
    estimator, held = SimpleRandomEstimator(), 0.0
    for failures in range(6):
        spread = [counted(int(r < failures), 50) for r in range(5)]
        found = combine([estimator.estimate(one) for one in spread], [estimator.tally(one) for one in spread])
        held += stats.binom.pmf(failures, 250, 1 - accuracy) * (found.low <= accuracy <= found.high)
    assert held > 0.95


@pytest.mark.parametrize(("design", "narrower"), [("sups", 0.9), ("adaptive", 0.97)])
def test_draws_tell_more_than_widths_and_still_cover(design: str, narrower: float) -> None:
    whole = classifier(5000, accuracy=0.9, seed=5)
    parts = [slice(start, start + 1000) for start in range(0, 5000, 1000)]
    frames = [
        Population(
            type(whole.frame)({name: v[part] for name, v in whole.frame.variables.items()}), whole.outcomes[part]
        )
        for part in parts
    ]
    estimator, held, widths = make("estimator", design), 0, []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        samples = [drawn(design, frame, 50, rng, "classification") for frame in frames]
        estimates = [estimator.estimate(sample) for sample in samples]
        found = combine(estimates, [estimator.tally(sample) for sample in samples])
        held += found.low <= whole.truth <= found.high
        widths.append((found.half_width, combine(estimates).half_width))
    by_draws, by_widths = np.median(widths, axis=0)
    assert held >= stats.binom.ppf(0.0005, 60, 0.95)
    assert by_draws < narrower * by_widths
